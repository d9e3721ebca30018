"""Scores: counted pixels, undefined classes, the mean over the defined ones, and disagreement."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from torch import Tensor

from peerseg.data import SegmentationDataset, Split
from peerseg.data.labels import IGNORE, UNLABELED, labels_of
from peerseg.errors import PeersegError
from peerseg.inference import confusion, evaluate
from peerseg.inference.evaluate import Scores, class_iou
from peerseg.networks.base import SegmentationNetwork


class Mirror(SegmentationNetwork):
    """Answers with the brightest channel, shifted by a constant."""

    def __init__(self, shift: int = 0) -> None:
        super().__init__(4, (0.0,) * 3, (1.0,) * 3)
        self.shift = shift

    def encode(self, x: Tensor) -> list[Tensor]:
        return [x.roll(self.shift, dims=1)]

    def decode(self, features: list[Tensor]) -> Tensor:
        return features[0]

    def classify(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        return feature


class Painted(SegmentationDataset):
    """Images whose brightest channel is known, with any masks."""

    def __init__(self, channels: list[npt.NDArray[np.uint8]], masks: list[npt.NDArray[np.uint8] | None]) -> None:
        self.label_space = labels_of(["ground", "tree", "road"])
        self.ids = [str(k) for k in range(len(masks))]
        self._images = [np.eye(3, dtype=np.uint8)[brightest] * 255 for brightest in channels]
        self._masks = masks

    def image(self, id: str) -> npt.NDArray[Any]:
        return np.asarray(self._images[int(id)])

    def mask(self, id: str) -> npt.NDArray[np.uint8] | None:
        return self._masks[int(id)]

    def split(self) -> Split:
        return Split((), (), self.ids)


def grid(text: str) -> npt.NDArray[np.uint8]:
    """Labels as digits; ``i`` is ignored, ``u`` unlabeled."""
    values = {"i": IGNORE, "u": UNLABELED}
    return np.array([[values.get(c, c) for c in line] for line in text.split()], np.uint8)


def test_confusion_counts_by_truth_and_prediction() -> None:
    random = np.random.default_rng(0)
    truth = random.choice(np.array([0, 1, 2, UNLABELED, IGNORE], np.uint8), (30, 40))
    labels = random.integers(0, 3, (30, 40), dtype=np.uint8)
    wanted = [[int(((truth == row) & (labels == column)).sum()) for column in range(3)] for row in range(3)]

    np.testing.assert_array_equal(confusion(truth, labels, 3), wanted)


def test_ignored_and_unlabeled_pixels_are_not_counted() -> None:
    assert confusion(grid("iu ui"), grid("01 12"), 3).sum() == 0


def test_254_classes_are_counted() -> None:
    truth = np.arange(256, dtype=np.uint8).reshape(16, 16)
    matrix = confusion(truth, np.minimum(truth, 253), 254)

    np.testing.assert_array_equal(matrix, np.eye(254, dtype=np.int64))


def test_a_prediction_of_another_size_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"a prediction of \(1, 2\) was scored against a mask of \(2, 2\)"):
        confusion(grid("00 00"), grid("00"), 3)


def test_iou_by_hand() -> None:
    # Class 0: 3 hits, 1 missed, 2 wrong; class 1: 2 hits, 2 missed, 1 wrong; class 2 nowhere.
    matrix = np.array([[3, 1, 0], [2, 2, 0], [0, 0, 0]])
    scores = Scores({"sv": matrix}, ("ground", "tree", "road"), None, 1)

    assert class_iou(matrix) == [50.0, 40.0, None]
    assert scores.iou("sv") == {"ground": 50.0, "tree": 40.0, "road": None}
    assert scores.miou("sv") == 45.0


def test_a_class_that_is_predicted_but_not_there_counts_as_zero() -> None:
    assert class_iou(np.array([[3, 1], [0, 0]])) == [75.0, 0.0]


def test_nothing_defined_has_no_mean() -> None:
    assert Scores({"sv": np.zeros((2, 2), np.int64)}, ("a", "b"), None, 1).miou("sv") is None


def test_matrices_are_summed_over_images_of_any_size() -> None:
    seen = [grid("011 002"), grid("20201"), grid("1")]
    truth = [grid("01i 012"), grid("2u211"), grid("1")]
    scores = evaluate([Mirror()], ["single"], Painted(seen, [*truth]), ["0", "1", "2"])
    counted = sum(confusion(t, s, 3) for t, s in zip(truth, seen, strict=True))

    np.testing.assert_array_equal(scores.matrices["single"], counted)
    assert scores.images == 3
    # ground: hits 2; truth 2, predicted 4. tree: hits 3; truth 5, predicted 3. road: hits 3; truth 3, predicted 3.
    assert scores.iou("single") == {"ground": 50.0, "tree": 60.0, "road": 100.0}


def test_only_the_ids_asked_for_are_scored() -> None:
    dataset = Painted([grid("0"), grid("1")], [grid("0"), grid("2")])

    assert evaluate([Mirror()], ["single"], dataset, ["0"]).miou("single") == 100.0
    assert evaluate([Mirror()], ["single"], dataset, iter(["1"])).miou("single") == 0.0


def test_every_vote_comes_from_one_pass() -> None:
    dataset = Painted([grid("0120")], [grid("0120")])
    members = {"single": Mirror(), "net2": Mirror(1), "net3": Mirror()}
    scores = evaluate(members, ["single", "net2", "net3", "sv", "hv"], dataset, ["0"])

    assert {rule: scores.miou(rule) for rule in scores.matrices} == {
        **{"single": 100.0, "net2": 0.0, "net3": 100.0, "sv": 100.0, "hv": 100.0}
    }


def test_disagreement_is_a_share_of_all_pixels() -> None:
    class Half(Mirror):
        """Shifts the left half alone."""

        def encode(self, x: Tensor) -> list[Tensor]:
            shifted = x.clone()
            shifted[..., :2] = x[..., :2].roll(1, dims=1)
            return [shifted]

    dataset = Painted([grid("0120 0120"), grid("0120")], [grid("iiii 0120"), grid("uuuu")])
    scores = evaluate([Mirror(), Half()], ["sv"], dataset, ["0", "1"])

    assert scores.disagreement == 50.0


def test_one_network_disagrees_with_nobody() -> None:
    scores = evaluate([Mirror()], ["single"], Painted([grid("01")], [grid("01")]), ["0"])
    assert scores.disagreement is None


def test_scores_as_plain_data() -> None:
    scores = evaluate([Mirror(), Mirror()], ["single", "sv"], Painted([grid("01")], [grid("01")]), ["0"])
    same = {"ground": 100.0, "tree": 100.0, "road": None}

    assert scores.as_dict() == {
        "miou": {"single": 100.0, "sv": 100.0},
        "iou": {"single": same, "sv": same},
        "disagreement": 0.0,
        "images": 1,
    }


def test_an_image_without_a_mask_is_refused() -> None:
    with pytest.raises(PeersegError, match="'0' has no mask to score against: add it or leave the image out"):
        evaluate([Mirror()], ["single"], Painted([grid("01")], [None]), ["0"])


def test_no_image_at_all_is_refused() -> None:
    with pytest.raises(PeersegError, match="no image was given to evaluate"):
        evaluate([Mirror()], ["single"], Painted([], []), [])
