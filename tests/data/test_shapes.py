"""Drawn scenes: a function of the seed, with exact masks and an ignored border around every object."""

import numpy as np
import pytest

from peerseg.data.labels import IGNORE
from peerseg.data.shapes import SPACE, Shapes
from peerseg.errors import PeersegError


@pytest.fixture(scope="module")
def scenes() -> Shapes:
    """Forty scenes of the usual size."""
    return Shapes(40)


def test_a_scene_has_an_image_and_a_mask_of_one_size() -> None:
    small = Shapes(2, size=24)
    image, mask = small.image(small.ids[1]), small.mask(small.ids[1])
    assert (image.shape, image.dtype) == ((24, 24, 3), np.uint8)
    assert (mask.shape, mask.dtype) == ((24, 24), np.uint8)
    assert small.size(small.ids[1]) == (24, 24)


def test_same_seed_same_scenes_in_any_order(scenes: Shapes) -> None:
    again = Shapes(10)
    for id in reversed(again.ids):
        assert np.array_equal(again.image(id), scenes.image(id))
        assert np.array_equal(again.mask(id), scenes.mask(id))


def test_scenes_differ_by_seed_and_by_place(scenes: Shapes) -> None:
    other = Shapes(2, seed=1)
    assert not np.array_equal(other.image(other.ids[0]), scenes.image(scenes.ids[0]))
    assert not np.array_equal(scenes.image(scenes.ids[1]), scenes.image(scenes.ids[0]))


def test_every_class_occurs_unevenly_beside_a_void_border(scenes: Shapes) -> None:
    pixels = sum(np.bincount(scenes.mask(id).ravel(), minlength=256) for id in scenes.ids)
    assert set(np.flatnonzero(pixels)) == {*range(len(SPACE)), IGNORE}
    assert pixels[0] > pixels[1] > 2 * pixels[5]
    assert 0.01 < pixels[IGNORE] / pixels.sum() < 0.2


def test_two_classes_never_touch(scenes: Shapes) -> None:
    for id in scenes.ids:
        mask = scenes.mask(id)
        for one, other in ((mask[1:], mask[:-1]), (mask[:, 1:], mask[:, :-1])):
            assert not ((one != other) & (one != IGNORE) & (other != IGNORE)).any()


def test_objects_look_unlike_the_ground(scenes: Shapes) -> None:
    spread = [
        np.ptp([scenes.image(id)[scenes.mask(id) == k].mean() for k in np.unique(scenes.mask(id)) if k != IGNORE])
        for id in scenes.ids
    ]
    assert np.mean(spread) > 15


@pytest.mark.parametrize(
    ("labeled", "val", "sizes"), [(None, None, (8, 0, 2)), (3, None, (3, 5, 2)), (3, 4, (3, 3, 4)), (9, 1, (9, 0, 1))]
)
def test_the_split_is_labeled_unlabeled_val(labeled: int | None, val: int | None, sizes: tuple[int, ...]) -> None:
    shapes = Shapes(10, labeled=labeled, val=val)
    split = shapes.split()
    assert (len(split.labeled), len(split.unlabeled), len(split.val)) == sizes
    assert (*split.labeled, *split.unlabeled, *split.val) == shapes.ids


@pytest.mark.parametrize(("count", "val"), [(1, None), (0, None), (4, 0), (4, 4)])
def test_scenes_of_one_kind_only_are_refused(count: int, val: int | None) -> None:
    with pytest.raises(PeersegError, match=f"{count} scenes with .* for val .*expected at least one of each kind"):
        Shapes(count, val=val)


@pytest.mark.parametrize("labeled", [0, -1, 9])
def test_an_impossible_number_of_labels_is_refused(labeled: int) -> None:
    with pytest.raises(PeersegError, match=f"{labeled} labeled scenes were asked for, expected 1 to 8"):
        Shapes(10, labeled=labeled)
