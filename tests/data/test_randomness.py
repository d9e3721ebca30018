"""Randomness is a function of a place: same place, same numbers; any other place, other numbers."""

import numpy as np
import pytest

from peerseg.data.randomness import entropy, generator, seed_of


def test_names_become_their_checksum() -> None:
    assert entropy(3, "labeled", 7) == [3, 3997175531, 7]


def test_entropy_takes_numpy_integers() -> None:
    words = entropy(np.int64(3), 4)
    assert words == [3, 4]
    assert all(type(word) is int for word in words)


def test_same_place_draws_the_same_numbers_whatever_ran_before() -> None:
    first = generator(1, 2, "labeled").random(5)
    np.random.default_rng(0).random(100)
    generator(1, 3, "labeled").random(3)
    assert np.array_equal(generator(1, 2, "labeled").random(5), first)


@pytest.mark.parametrize(
    "place",
    [(2, 2, 3, "labeled"), (1, 3, 3, "labeled"), (1, 2, 4, "labeled"), (1, 2, 3, "boxes"), (2, 1, 3, "labeled")],
)
def test_every_part_of_a_place_counts(place: tuple[int | str, ...]) -> None:
    assert not np.array_equal(generator(*place).random(5), generator(1, 2, 3, "labeled").random(5))


def test_seed_fits_into_63_bits_and_differs_by_place() -> None:
    seeds = {seed_of(seed, step, "noise") for seed in range(10) for step in range(10)}
    assert len(seeds) == 100
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_seed_stays_what_it_was() -> None:
    """A change here would quietly change the initial weights of every run."""
    assert seed_of(0, 1, "weights") == 3070155652473197163
