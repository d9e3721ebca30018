"""Randomness as a function: every draw follows from a seed and the place it is drawn for, never from what ran before."""

import zlib

import numpy as np


def entropy(*place: int | str) -> list[int]:
    """The words that seed a generator for one place.

    Args:
        place: Integers (seed, step, slot ...) and names (the stream).

    Returns:
        Non-negative integers; names become their CRC-32.
    """
    return [zlib.crc32(word.encode()) if isinstance(word, str) else int(word) for word in place]


def generator(*place: int | str) -> np.random.Generator:
    """A generator for one place: the same place draws the same numbers, in any process, at any time.

    Args:
        place: Such as ``(seed, step, slot, "labeled")``.

    Returns:
        A fresh numpy generator.
    """
    return np.random.default_rng(entropy(*place))


def seed_of(*place: int | str) -> int:
    """One integer below 2**63 for a place, to seed a generator that takes a single number.

    Args:
        place: As for ``generator``.

    Returns:
        The seed.
    """
    words = np.random.SeedSequence(entropy(*place)).generate_state(1, np.uint64)
    return int(words[0] >> np.uint64(1))
