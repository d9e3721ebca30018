"""The endless order of a pool: pass after pass over all ids, each pass in a permutation of its own."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from peerseg.data.randomness import generator


def endless(ids: Sequence[str], position: int, seed: int, stream: str) -> str:
    """The id at a position of the endless order.

    Args:
        ids: The pool.
        position: Counted from 0, over all passes.
        seed: Of the run.
        stream: Which order; each has its own.

    Returns:
        One of ``ids``.
    """
    passes, place = divmod(position, len(ids))
    return ids[int(_permutation(seed, stream, passes, len(ids))[place])]


@lru_cache(maxsize=6)  # two passes can meet within a step, for each of three streams
def _permutation(seed: int, stream: str, passes: int, count: int) -> npt.NDArray[np.int64]:
    return generator(seed, stream, passes, "order").permutation(count)


class Chain(Sequence[str]):
    """Two sequences behind one another, without copying a pool.

    Args:
        first: The first.
        second: The second.
    """

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def __getitem__(self, place: int) -> str:  # type: ignore[override]  # slices are never taken
        return self._first[place] if place < len(self._first) else self._second[place - len(self._first)]
