"""Clocks and scales: interleaved repetitions, bytes saved for backward, resident memory."""

import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor, nn

from peerseg.errors import PeersegError

KIB_IN_MIB = 1024


@dataclass(frozen=True)
class Sample:
    """Repeated measurements of one number.

    Args:
        values: In order of repetition.
    """

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """The middle one."""
        return statistics.median(self.values)

    def over(self, other: "Sample") -> "Sample":
        """The ratio to another, repetition by repetition.

        Args:
            other: Measured beside this.

        Returns:
            Ratios.
        """
        return Sample(tuple(one / two for one, two in zip(self.values, other.values, strict=True)))

    def __str__(self) -> str:
        return f"{self.median:.2f} ({min(self.values):.2f} to {max(self.values):.2f})"


def interleaved(actions: Mapping[str, Callable[[], object]], repetitions: int) -> dict[str, Sample]:
    """Time actions in turn, so that whatever else the machine does meets all of them.

    Args:
        actions: By name; each is done once before, uncounted.
        repetitions: How often.

    Returns:
        Seconds.
    """
    taken: dict[str, list[float]] = {name: [] for name in actions}
    for repetition in range(repetitions + 1):
        for name, action in actions.items():
            begin = time.perf_counter()
            action()
            if repetition:
                taken[name].append(time.perf_counter() - begin)
    return {name: Sample(tuple(values)) for name, values in taken.items()}


@dataclass
class Saved:
    """Bytes that autograd holds for backward passes.

    Args:
        now: At the moment.
        peak: The most at any moment.
    """

    now: int = 0
    peak: int = 0
    _holders: dict[int, int] = field(default_factory=dict)

    def hold(self, tensor: Tensor) -> None:
        """Count the memory of a tensor, once however often it is held.

        Args:
            tensor: That was saved.
        """
        storage = tensor.untyped_storage()
        self._holders[storage.data_ptr()] = self._holders.get(storage.data_ptr(), 0) + 1
        if self._holders[storage.data_ptr()] == 1:
            self.now += storage.nbytes()
            self.peak = max(self.peak, self.now)

    def release(self, tensor: Tensor) -> None:
        """Stop counting one holder of a tensor's memory.

        Args:
            tensor: That was held.
        """
        storage = tensor.untyped_storage()
        self._holders[storage.data_ptr()] -= 1
        if not self._holders[storage.data_ptr()]:
            del self._holders[storage.data_ptr()]
            self.now -= storage.nbytes()


class _Held:
    def __init__(self, tensor: Tensor, saved: Saved) -> None:
        self.tensor, self._saved = tensor, saved
        saved.hold(tensor)

    def __del__(self) -> None:
        self._saved.release(self.tensor)


@contextmanager
def counting_saved(networks: Sequence[nn.Module]) -> Iterator[Saved]:
    """Count what graphs hold, other than parameters and buffers.

    Args:
        networks: Whose parameters and buffers are not counted.

    Yields:
        The count.
    """
    saved = Saved()
    own = {t.untyped_storage().data_ptr() for f in networks for t in (*f.parameters(), *f.buffers())}

    def pack(tensor: Tensor) -> Tensor | _Held:
        return tensor if tensor.untyped_storage().data_ptr() in own else _Held(tensor, saved)

    def unpack(packed: Tensor | _Held) -> Tensor:
        return packed.tensor if isinstance(packed, _Held) else packed

    with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
        yield saved


def resident_growth(action: Callable[[], object]) -> float:
    """By how many MiB an action raises the greatest memory that this process was ever resident with.

    Args:
        action: What is done; only the first one in a process tells something.

    Returns:
        MiB.
    """
    before = _most_resident()
    action()
    return (_most_resident() - before) / KIB_IN_MIB


def _most_resident() -> int:
    """KiB. What ``getrusage`` gives would count the process that started this one too."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf8"))
    if found is None:
        raise PeersegError("this system does not tell how much memory was resident: run the benchmarks on Linux")
    return int(found[1])
