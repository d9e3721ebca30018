"""Numbers of finished runs: spreads, paired differences, and the quantiles behind their intervals."""

import math
from pathlib import Path

import numpy as np
import pytest

from peerseg.errors import PeersegError
from peerseg.experiment.results import Difference, Spread, Study, metrics_of, t_quantile
from peerseg.runs import METRICS, RunFolder

SCORES = {
    "ncps": {
        0: {"single": {"miou": 50.0}, "sv": {"miou": 60.0, "iou:tree": 10.0, "iou:road": None}},
        1: {"single": {"miou": 51.0}, "sv": {"miou": 63.0, "iou:tree": None, "iou:road": None}},
        2: {"single": {"miou": 55.0}, "sv": {"miou": 66.0, "iou:tree": 30.0, "iou:road": None}},
    },
    "alone": {k: {"single": {"miou": value}} for k, value in enumerate((50.0, 50.0, 53.0))},
}


@pytest.fixture
def study() -> Study:
    return Study({"ncps": {}, "alone": {}}, SCORES)


def density(t: np.ndarray, freedom: int) -> np.ndarray:
    """Student's t."""
    scale = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)) / math.sqrt(freedom * math.pi)
    return np.asarray(scale * (1 + t**2 / freedom) ** (-(freedom + 1) / 2))


@pytest.mark.parametrize("freedom", [*range(1, 41), 100])
def test_quantiles_leave_two_and_a_half_percent_above(freedom: int) -> None:
    t = np.linspace(0, t_quantile(freedom), 20_001)
    values = density(t, freedom)
    below = 0.5 + float(((values[:-1] + values[1:]) / 2 * np.diff(t)).sum())

    # Four decimals of a tabulated quantile, and the terms that the expansion leaves out, are worth at most this much.
    assert below == pytest.approx(0.975, abs=4e-6 if freedom <= 30 else 6e-6)


def test_quantiles_fall_towards_the_normal_one() -> None:
    quantiles = [t_quantile(freedom) for freedom in range(1, 200)]

    assert quantiles == sorted(quantiles, reverse=True)
    assert 1.96 < quantiles[-1] < 1.973


def test_a_difference_by_hand() -> None:
    # Mean 4; deviations -3, 0, 3: variance 18 / 2 = 9; half width 4.3027 * 3 / sqrt(3).
    found = Difference((1.0, 4.0, 7.0))

    assert found.mean == 4.0
    assert found.interval == pytest.approx((4 - 7.4525, 4 + 7.4525), abs=1e-3)


def test_an_interval_of_two_seeds_by_hand() -> None:
    # Mean 2, standard deviation sqrt(2), half width 12.7062 * sqrt(2) / sqrt(2).
    assert Difference((1.0, 3.0)).interval == pytest.approx((2 - 12.7062, 2 + 12.7062))


def test_one_seed_has_no_interval() -> None:
    assert Difference((3.0,)).interval is None
    assert Difference((3.0,)).mean == 3.0


def test_intervals_hold_the_truth_nineteen_times_in_twenty() -> None:
    random = np.random.default_rng(0)
    draws = random.normal(1.0, 2.0, (4000, 3))
    held = [low <= 1.0 <= high for low, high in (Difference(tuple(draw)).interval or (0, 0) for draw in draws.tolist())]

    assert np.mean(held) == pytest.approx(0.95, abs=0.012)


def test_seeds_are_paired(study: Study) -> None:
    assert study.difference(("ncps", "sv"), ("ncps", "single")).values == (10.0, 12.0, 11.0)
    assert study.difference(("ncps", "single"), ("alone", "single")).values == (0.0, 1.0, 2.0)


def test_a_seed_without_a_number_is_left_out_of_the_pairs(study: Study) -> None:
    assert study.difference(("ncps", "sv"), ("ncps", "sv"), "iou:tree").values == (0.0, 0.0)


def test_a_spread_is_shown_with_its_ends() -> None:
    assert str(Spread((60.0, 63.04, 66.0))) == "63.0 (60.0 to 66.0)"
    assert str(Spread((71.26,))) == "71.3"


def test_spreads_of_a_study(study: Study) -> None:
    assert study.spread("ncps", "sv") == Spread((60.0, 63.0, 66.0))
    assert study.spread("ncps", "sv", "iou:tree") == Spread((10.0, 30.0))
    assert study.spread("ncps", "sv", "iou:road") is None
    assert study.spread("alone", "sv") is None


def test_a_study_as_plain_data(study: Study) -> None:
    assert study.votes() == ["single", "sv"]
    assert study.as_dict() == {
        "ncps": {
            "single": {"mean": 52.0, "min": 50.0, "max": 55.0, "seeds": [50.0, 51.0, 55.0]},
            "sv": {"mean": 63.0, "min": 60.0, "max": 66.0, "seeds": [60.0, 63.0, 66.0]},
        },
        "alone": {"single": {"mean": 51.0, "min": 50.0, "max": 53.0, "seeds": [50.0, 50.0, 53.0]}},
    }


def test_scores_are_read_from_the_last_rows(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {})
    for step in (9, 10):
        run.append(
            METRICS, [{"step": step, "vote": vote, "miou": step + 0.1, "iou:tree": None} for vote in ("single", "sv")]
        )

    assert metrics_of(run) == {vote: {"miou": 10.1, "iou:tree": None} for vote in ("single", "sv")}
    assert metrics_of(run, 9)["sv"]["miou"] == 9.1


def test_a_run_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"run' has no row of an evaluation: resume it"):
        metrics_of(RunFolder.create(tmp_path / "run", {}))
