"""The loader and evaluation sections: what they fill in and what they refuse."""

from typing import Any

import pytest

from peerseg.data.color import Jitter
from peerseg.errors import PeersegError
from peerseg.experiment.plans import EvaluationPlan, LoaderPlan


def test_a_single_side_is_a_square() -> None:
    assert LoaderPlan(crop=64).size == (64, 64)
    assert LoaderPlan(crop=(64, 128)).size == (64, 128)


def test_as_many_unlabeled_images_as_labeled_ones_unless_told() -> None:
    assert LoaderPlan(batch=6).unlabeled_count == 6
    assert LoaderPlan(batch=6, unlabeled_batch=2).unlabeled_count == 2


@pytest.mark.parametrize(
    ("keywords", "sentence"),
    [
        ({"batch": 0}, "loader.batch is 0, expected a number above 0"),
        ({"unlabeled_batch": 0}, "loader.unlabeled_batch is 0, expected a number above 0"),
        ({"boxes": -1}, "loader.boxes is -1, expected a number above 0"),
        ({"crop": 0}, "loader.crop is 0, expected a number above 0"),
        ({"crop": (64, -8)}, "loader.crop is -8, expected a number above 0"),
        ({"scales": ()}, "loader.scales is 0, expected a number above 0"),
        ({"scales": (1.0, 0.0)}, "loader.scales is 0.0, expected a number above 0"),
        ({"workers": -1}, "loader.workers is -1, expected a number at least 0"),
    ],
)
def test_a_loader_that_cannot_load_is_refused(keywords: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PeersegError, match=sentence):
        LoaderPlan(**keywords)


def test_strong_views_stray_as_far_as_is_said() -> None:
    assert LoaderPlan().strong == Jitter()
    assert LoaderPlan(jitter={"blur": 0, "sigma": 2}).strong == Jitter(blur=0.0, sigma=2.0)


@pytest.mark.parametrize(
    ("jitter", "sentence"),
    [
        ({"sigmas": 0.1}, "loader.jitter.sigmas is no setting of Jitter; did you mean 'sigma'"),
        ({"blur": "no"}, "loader.jitter.blur is 'no', expected a number"),
        ({"blur": 1.5}, "jitter.blur is 1.5, expected a number from 0 to 1"),
        ({"sigma": -1}, "loader.jitter.sigma is -1.0, expected a number at least 0.1"),
    ],
)
def test_a_jitter_that_cannot_be_is_refused(jitter: dict[str, Any], sentence: str) -> None:
    with pytest.raises(PeersegError, match=sentence):
        LoaderPlan(jitter=jitter)


def test_an_evaluation_that_never_comes_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"evaluation.every is 0, expected a number at least 1"):
        EvaluationPlan(every=0)
