"""One process, one device: nothing to exchange, nothing to sum."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal

import torch
from torch import Tensor, nn

from peerseg.data.batch import Batch, map_tensors
from peerseg.errors import PeersegError
from peerseg.methods.base import Exchange, Method
from peerseg.placement.base import Placement

Precision = Literal["auto", "float32", "bfloat16"]
IMAGES = 4  # axes of a batch of images; masks and boxes have three


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
        precision: Of convolutions while learning: "float32", "bfloat16" (half the time where the device has it), or "auto"
            (bfloat16 where the device has it). Weights, losses and answers are float32 always.
        channels_last: Keep the channels of a pixel together in memory, which convolutions are faster with.
        deterministic: Make CUDA devices compute the same bits in every run, as CPUs do by themselves; without it a resumed
            run ends with other weights than one that was never stopped. It costs little, and more in bfloat16.
    """

    def __init__(
        self,
        count: int,
        device: str = "auto",
        precision: Precision = "auto",
        channels_last: bool = True,
        deterministic: bool = True,
    ) -> None:
        self.exchange = Together(count)
        self._device = _find(device)
        self._halved = precision == "bfloat16" or (precision == "auto" and has_bfloat16(self._device))
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self._deterministic = deterministic and self._device.type == "cuda"

    def place(self, method: Method) -> None:
        """Move the method to the device; see ``Placement.place``."""
        method.to(self._device)
        method.to(memory_format=self._format)

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

    def learning(self) -> AbstractContextManager[None]:
        """Convolutions in the precision that was asked for; see ``Placement.learning``."""
        # No cache: weights that a pass without gradient has cast would get none in the next pass either.
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._halved, cache_enabled=False)

    def move(self, batch: Batch) -> Batch:
        """Move the batch to the device; see ``Placement.move``."""
        return map_tensors(batch, self._moved)

    def _moved(self, tensor: Tensor) -> Tensor:
        moved = tensor.to(self._device)
        return moved.contiguous(memory_format=self._format) if tensor.ndim == IMAGES else moved

    def reduce(self, parameters: Iterable[nn.Parameter]) -> None:
        """Nothing to sum in one process; see ``Placement.reduce``."""

    def describe(self) -> str:
        """The device and the precision; see ``Placement.describe``."""
        return f"{self._device} in {'bfloat16' if self._halved else 'float32'}"


def has_bfloat16(device: torch.device) -> bool:
    """Whether a device multiplies in bfloat16 by itself.

    Args:
        device: Which.

    Returns:
        False where torch would only imitate it, or cannot tell.
    """
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # Older releases of torch cannot tell.
    capabilities: Mapping[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16", "bf16"))


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
