"""One process, one device: nothing to exchange, nothing to sum."""

from collections.abc import Iterable, Mapping, Sequence

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
    """

    def __init__(self, count: int, device: str = "auto") -> None:
        self.exchange = Together(count)
        self._device = _find(device)

    def place(self, method: Method) -> None:
        """Move the method to the device; see ``Placement.place``."""
        method.to(self._device)

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
