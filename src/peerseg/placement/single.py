"""One process, one device: nothing to exchange, nothing to sum."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from peerseg.data.batch import Batch, map_tensors
from peerseg.errors import PeersegError
from peerseg.methods.base import Exchange, Method
from peerseg.placement.base import Placement


class Together(Exchange):
    """All networks live here, so every answer is at hand.

    Args:
        count: n.
    """

    def __init__(self, count: int) -> None:
        self.members = range(count)

    def __call__(self, own: Mapping[int, Tensor]) -> Sequence[Tensor]:
        """The label maps in network order; see ``Exchange``."""
        return [own[i] for i in self.members]


class OneProcess(Placement):
    """Everything on one device.

    Args:
        count: n.
        device: "auto" (an accelerator if there is one), "cpu", "cuda", "cuda:1", "mps" ...
        deterministic: Make CUDA devices compute the same bits in every run, as CPUs do by themselves; without it they are
            faster by a sixth or so, and a resumed run ends with other weights than one that was never stopped.
    """

    def __init__(self, count: int, device: str = "auto", deterministic: bool = True) -> None:
        self.exchange = Together(count)
        self._device = _find(device)
        self._deterministic = deterministic and self._device.type == "cuda"

    def place(self, method: Method) -> None:
        """Move the method to the device; see ``Placement.place``."""
        method.to(self._device)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Deterministic operations where they must be asked for; see ``Placement.running``."""
        if not self._deterministic:
            yield
            return
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read when a device first multiplies matrices
        before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        memory: Any = torch.utils.deterministic
        filling = memory.fill_uninitialized_memory
        # An operation that knows no such way is named in a warning, and its rounding differs between runs.
        torch.use_deterministic_algorithms(True, warn_only=True)
        memory.fill_uninitialized_memory = False  # a help to find bugs, and slow
        try:
            yield
        finally:
            torch.use_deterministic_algorithms(before[0], warn_only=before[1])
            memory.fill_uninitialized_memory = filling

    def move(self, batch: Batch) -> Batch:
        """Move the batch to the device; see ``Placement.move``."""
        return batch if self._device.type == "cpu" else map_tensors(batch, lambda tensor: tensor.to(self._device))

    def reduce(self, parameters: Iterable[nn.Parameter]) -> None:
        """Nothing to sum in one process; see ``Placement.reduce``."""

    def describe(self) -> str:
        """The device; see ``Placement.describe``."""
        return str(self._device)


def _find(name: str) -> torch.device:
    if name == "auto":
        accelerator = torch.accelerator.current_accelerator() if torch.accelerator.is_available() else None
        return accelerator or torch.device("cpu")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise PeersegError(
            f"placement.device is {name!r}, which this machine does not offer: use 'auto' or 'cpu'"
        ) from error
    return device
