"""Time and chance as methods see them."""

import pytest
import torch

from peerseg.methods import Clock


def test_the_ramp_is_never_0_and_ends_at_1() -> None:
    factors = [Clock(0, step, 10).ramp(0.4) for step in range(10)]
    assert factors == pytest.approx([0.25, 0.5, 0.75, *[1.0] * 7])
    assert Clock(0, 0, 10).ramp(0) == 1.0


def test_generators_follow_from_seed_step_part_and_stream() -> None:
    def draw(clock: Clock, *stream: int | str) -> list[float]:
        return torch.rand(3, generator=clock.generator(*stream)).tolist()

    here = draw(Clock(1, 2, 9), "noise", 0)
    assert draw(Clock(1, 2, 9), "noise", 0) == here
    others = [
        draw(Clock(2, 2, 9), "noise", 0),
        draw(Clock(1, 3, 9), "noise", 0),
        draw(Clock(1, 2, 9, part=1), "noise", 0),
        draw(Clock(1, 2, 9), "noise", 1),
        draw(Clock(1, 2, 9), "dropout", 0),
    ]
    assert here not in others
    assert len({tuple(other) for other in others}) == len(others)
