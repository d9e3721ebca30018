"""CutMix boxes against the numbers measured on the published generator, and the choice between two views."""

import numpy as np
import numpy.typing as npt
import pytest
import torch

from peerseg.data.mixing import draw_boxes, draw_classes, mix
from peerseg.data.randomness import generator

Boxes = npt.NDArray[np.bool_]


class Middle:
    """A generator that always draws the middle of what it is asked for."""

    def uniform(self, low: float = 0.0, high: float = 1.0) -> float:
        return (low + high) / 2


@pytest.fixture(scope="module")
def masks() -> Boxes:
    """1500 masks of 128 x 128 pixels."""
    return np.stack([draw_boxes(generator(0, k, "boxes"), 128, 128) for k in range(1500)])


def test_coverage_is_the_published_one(masks: Boxes) -> None:
    covered = masks.mean(axis=(1, 2))
    assert covered.mean() == pytest.approx(0.252, abs=0.006)
    assert covered.std() == pytest.approx(0.070, abs=0.005)
    assert 0.05 < covered.min() < 0.12
    assert 0.40 < covered.max() <= 0.5


def test_the_center_is_covered_often_and_the_corners_hardly_ever(masks: Boxes) -> None:
    assert masks[:, 64, 64].mean() == pytest.approx(0.47, abs=0.04)
    assert masks[:, [0, 0, -1, -1], [0, -1, 0, -1]].mean() < 0.01


def test_single_boxes_are_rectangles_of_a_quarter_to_a_half() -> None:
    areas, sides = [], []
    for k in range(300):
        rows, columns = np.nonzero(draw_boxes(generator(0, k), 100, 200, count=1))
        height, width = np.ptp(rows) + 1, np.ptp(columns) + 1
        assert height * width == len(rows), "not a rectangle"
        areas.append(len(rows) / 20000)
        sides += [height / 100, width / 200]
    assert min(areas) == pytest.approx(0.25, abs=0.01)
    assert max(areas) == pytest.approx(0.5, abs=0.01)
    assert min(sides) < 0.35
    assert max(sides) > 0.9


def test_the_box_follows_the_published_formula() -> None:
    # p = 0.375 and u = 0.5 give sides of sqrt(0.375) = 0.612; the top is round(39 * 0.5) = 20, half to even.
    expected = np.zeros((100, 100), bool)
    expected[20:81, 20:81] = True
    assert np.array_equal(draw_boxes(Middle(), 100, 100, count=1), expected)


@pytest.mark.parametrize(("count", "side"), [(2, 0), (3, 35), (4, 0), (5, 27)])
def test_boxes_toggle_what_they_cover(count: int, side: int) -> None:
    """Equal boxes cancel in pairs; what stays is one box of an equal share of the area."""
    boxes = draw_boxes(Middle(), 100, 100, count=count)
    assert boxes.sum() == side**2


def test_a_mask_is_a_function_of_its_generator() -> None:
    first, again, other = (draw_boxes(generator(0, step), 32, 48) for step in (1, 1, 2))
    assert first.shape == (32, 48)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("shape", [(2, 4, 5), (2, 3, 4, 5)])
def test_mix_is_the_equation_of_the_paper(shape: tuple[int, ...]) -> None:
    first, second = torch.rand(2, *shape, generator=torch.Generator().manual_seed(0))
    boxes = torch.zeros(2, 4, 5, dtype=torch.bool)
    boxes[0, 1:3, 2:4] = True
    boxes[1, 0] = True
    m = boxes.float() if len(shape) == 3 else boxes.float()[:, None]
    assert torch.equal(mix(first, second, boxes), (1 - m) * first + m * second)


def test_mixed_labels_stay_bytes() -> None:
    zeros, ones = torch.zeros(1, 2, 2, dtype=torch.uint8), torch.ones(1, 2, 2, dtype=torch.uint8)
    mixed = mix(zeros, ones, torch.tensor([[[True, False], [False, True]]]))
    assert mixed.dtype == torch.uint8
    assert mixed.tolist() == [[[1, 0], [0, 1]]]


def test_half_of_the_classes_of_each_image_are_drawn() -> None:
    labels = torch.tensor([[[0, 1, 2], [2, 4, 4]], [[3, 3, 3], [3, 3, 3]]], dtype=torch.uint8)
    drawn = set()
    for seed in range(60):
        chosen = draw_classes(labels, 5, torch.Generator().manual_seed(seed))
        names = tuple(labels[0][chosen[0]].unique().tolist())
        assert torch.equal(chosen[0], torch.isin(labels[0], torch.tensor(names, dtype=torch.uint8)))
        assert not chosen[1].any(), "half of one class is none"
        drawn.add(names)
    assert drawn == {(0, 1), (0, 2), (0, 4), (1, 2), (1, 4), (2, 4)}
