"""Where the networks live. The only package that knows devices; later also the only one that knows other processes."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from contextlib import AbstractContextManager

from torch import nn

from peerseg.data.batch import Batch
from peerseg.methods.base import Exchange, Method


class Placement(ABC):
    """How one training is laid out.

    Attributes:
        exchange: How networks get each other's labels.
        share: What a local loss counts of the whole batch's; gradients are summed, so the shares add to 1.
        part: Which part of the batch this process holds.
        main: Whether this process writes the run folder.
    """

    exchange: Exchange
    share: float = 1.0
    part: int = 0
    main: bool = True

    @abstractmethod
    def place(self, method: Method) -> None:
        """Move a method to where it learns.

        Args:
            method: Moved in place.
        """

    @abstractmethod
    def running(self) -> AbstractContextManager[None]:
        """What must hold of the device while networks learn or answer; it ends with the context."""

    @abstractmethod
    def learning(self) -> AbstractContextManager[None]:
        """What passes that learn are made in besides; their backward passes are not."""

    @abstractmethod
    def move(self, batch: Batch) -> Batch:
        """Move a batch to where it is learned from.

        Args:
            batch: On the CPU.

        Returns:
            The batch, beside the networks.
        """

    @abstractmethod
    def reduce(self, parameters: Iterable[nn.Parameter]) -> None:
        """Sum gradients over processes.

        Args:
            parameters: Whose gradients are final.
        """

    @abstractmethod
    def describe(self) -> str:
        """Where this is, for the record."""
