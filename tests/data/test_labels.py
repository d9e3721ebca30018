"""Label spaces: how many classes there may be, their colors, and the two states without a class."""

import numpy as np
import pytest

from peerseg.data.labels import IGNORE, MOST_CLASSES, UNLABELED, LabelSpace, labels_of, spread_colors, value_table
from peerseg.errors import PeersegError


@pytest.mark.parametrize("count", [0, 1, MOST_CLASSES + 1, 300])
def test_too_few_or_too_many_classes_are_refused(count: int) -> None:
    with pytest.raises(PeersegError, match=f"{count} classes were given, expected 2 to 254 .*merge classes"):
        LabelSpace(tuple(str(k) for k in range(count)), tuple((0, 0, 0) for _ in range(count)))


@pytest.mark.parametrize("count", [2, MOST_CLASSES])
def test_the_limits_themselves_are_allowed(count: int) -> None:
    assert len(labels_of([str(k) for k in range(count)])) == count


def test_a_color_is_needed_for_every_class() -> None:
    with pytest.raises(PeersegError, match="3 class names but 2 colors"):
        LabelSpace(("a", "b", "c"), ((0, 0, 0), (1, 1, 1)))


def test_names_may_not_repeat() -> None:
    with pytest.raises(PeersegError, match=r"'a', 'b', 'a'.* repeat"):
        labels_of(["a", "b", "a"])


def test_palette_shows_classes_and_states() -> None:
    colors = np.array(LabelSpace(("a", "b"), ((1, 2, 3), (4, 5, 6))).palette()).reshape(256, 3)
    assert colors[:2].tolist() == [[1, 2, 3], [4, 5, 6]]
    assert not colors[2:UNLABELED].any()
    assert colors[UNLABELED].tolist() == [128] * 3
    assert colors[IGNORE].tolist() == [255] * 3


def test_paint_colors_every_pixel() -> None:
    space = LabelSpace(("a", "b"), ((1, 2, 3), (4, 5, 6)))
    painted = space.paint(np.array([[1, 0], [UNLABELED, IGNORE]], np.uint8))
    assert painted.dtype == np.uint8
    assert painted.tolist() == [[[4, 5, 6], [1, 2, 3]], [[128] * 3, [255] * 3]]


def test_spread_colors_are_those_of_pascal_voc() -> None:
    published = ((0, 0, 0), (128, 0, 0), (0, 128, 0), (128, 128, 0), (0, 0, 128), (128, 0, 128), (0, 128, 128))
    assert spread_colors(7) == published
    assert spread_colors(21)[20] == (0, 64, 128)
    assert len(set(spread_colors(256))) == 256


def test_value_table_maps_values_and_states() -> None:
    assert value_table([0, 7]) == {0: 0, 7: 1, 255: IGNORE, 254: UNLABELED}
    assert value_table([1, 2], ignore=0, unlabeled=None) == {1: 0, 2: 1, 0: IGNORE}


def test_a_class_wins_over_a_state() -> None:
    assert value_table([0, 255])[255] == 1
