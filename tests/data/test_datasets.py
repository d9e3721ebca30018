"""What every data set of the name table promises."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from conftest import write_labels, write_picture
from fakes import write_cityscapes, write_voc
from peerseg.data import Cityscapes, ImageFolder, SegmentationDataset, Shapes, Voc
from peerseg.data.inspect import inspect
from peerseg.data.labels import UNLABELED
from peerseg.data.splits import check_disjoint
from peerseg.experiment.tables import DATASETS


def _folder(root: Path) -> ImageFolder:
    for k in range(6):
        write_picture(root / "images" / f"{k}.png", seed=k)
        if k < 4:
            write_labels(root / "masks" / f"{k}.png", seed=k)
    return ImageFolder(root)


MADE: dict[str, Callable[[Path], SegmentationDataset]] = {
    "folder": _folder,
    "shapes": lambda _: Shapes(8, labeled=3, size=24),
    "voc": lambda root: Voc(write_voc(root), ratio=4),
    "cityscapes": lambda root: Cityscapes(write_cityscapes(root), ratio=4),
}


def test_every_row_is_covered() -> None:
    assert set(MADE) == set(DATASETS)


@pytest.mark.parametrize("name", MADE)
def test_images_masks_and_sizes_fit_together(name: str, tmp_path: Path) -> None:
    data = MADE[name](tmp_path)
    split = data.split()
    for id in (*split.labeled, *split.val):
        image, mask = data.image(id), data.mask(id)
        assert mask is not None
        assert (image.ndim, image.dtype, mask.dtype) == (3, np.uint8, np.uint8)
        assert image.shape[:2] == mask.shape == data.size(id)
        assert set(np.unique(mask)) <= {*range(len(data.label_space)), 254, 255}
        assert id in data.file(id)
    for id in split.unlabeled:
        assert data.image(id).shape[:2] == data.size(id)


@pytest.mark.parametrize("name", MADE)
def test_a_split_has_three_parts_of_its_own_ids(name: str, tmp_path: Path) -> None:
    data = MADE[name](tmp_path)
    split = data.split()
    check_disjoint(split)
    assert all((split.labeled, split.unlabeled, split.val))
    assert {*split.labeled, *split.unlabeled, *split.val} <= set(data.ids)
    assert len(set(data.ids)) == len(data.ids)


@pytest.mark.parametrize("name", MADE)
def test_the_same_call_gives_the_same_answer(name: str, tmp_path: Path) -> None:
    data = MADE[name](tmp_path)
    id = data.split().labeled[0]
    assert np.array_equal(data.image(id), data.image(id))
    assert np.array_equal(np.asarray(data.mask(id)), np.asarray(data.mask(id)))
    assert data.split() == data.split()


@pytest.mark.parametrize("name", MADE)
def test_it_can_be_inspected(name: str, tmp_path: Path) -> None:
    data = MADE[name](tmp_path)
    found = inspect(data, data.split())
    assert found.pixels["labeled"][:UNLABELED].sum() > 0
    assert not found.partly
