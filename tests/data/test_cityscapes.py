"""Cityscapes, on a fake of its tree."""

import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from fakes import write_cityscapes
from peerseg.data import Cityscapes
from peerseg.data.cityscapes import RAW, SPACE, TREE
from peerseg.data.labels import IGNORE
from peerseg.errors import PeersegError

FIRST = "aachen_000000_000019"


def test_the_19_classes_are_those_of_the_evaluation() -> None:
    assert len(SPACE) == len(RAW) == 19
    raw = dict(zip(SPACE.names, RAW, strict=True))
    assert (raw["road"], raw["pole"], raw["sky"], raw["train"], raw["bicycle"]) == (7, 17, 23, 31, 33)
    assert dict(zip(SPACE.names, SPACE.colors, strict=True))["vegetation"] == (107, 142, 35)


def test_images_of_all_cities_are_split_by_part(tmp_path: Path) -> None:
    data = Cityscapes(write_cityscapes(tmp_path), ratio=5)
    split = data.split()
    assert split.val == ("lindau_000000_000019", "lindau_000001_000019")
    assert split.labeled == (FIRST, "jena_000001_000019", "ulm_000002_000019")
    assert len(split.unlabeled) == 9
    assert data.file(FIRST).endswith("leftImg8bit/train/aachen/aachen_000000_000019_leftImg8bit.png")
    (note,) = data.notes
    assert note.startswith("this is not a published split of Cityscapes: published are 1/16, 1/8, 1/4, 1/2")


def test_the_authors_list_gives_the_order_that_is_counted_in(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path / "city")
    order = ["ulm_000003_000019", "jena_000000_000019", FIRST, "jena_000002_000019", "ulm_000000_000019"]
    lines = [f"/images/train/{id}.png\t/segmentation/train/{id}_gtFine.png" for id in order]
    (tmp_path / "train.txt").write_text("\n".join(lines))
    split = Cityscapes(root, ratio=2, lists=tmp_path).split()
    assert split.labeled == (order[0], order[2], order[4])
    assert split.unlabeled == (order[1], order[3])


def test_both_kinds_of_masks_mean_the_same(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path)
    raw, train = Cityscapes(root).mask(FIRST), Cityscapes(root, masks="labelTrainIds").mask(FIRST)
    assert raw is not None
    assert np.array_equal(raw, train)
    with PIL.Image.open(root / "gtFine" / "train" / "aachen" / f"{FIRST}_gtFine_labelIds.png") as file:
        stored = np.asarray(file)
    for value in range(34):
        wanted = RAW.index(value) if value in RAW else IGNORE
        assert np.unique(raw[stored == value]).tolist() == [wanted], value


def test_train_ids_in_the_place_of_label_ids_are_refused(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path)
    masks = root / "gtFine" / "train" / "aachen"
    shutil.copy(masks / f"{FIRST}_gtFine_labelTrainIds.png", masks / f"{FIRST}_gtFine_labelIds.png")
    with pytest.raises(
        PeersegError, match=r"labelIds.png' holds the value 255, which labelIds never do: .* labelTrainIds"
    ):
        Cityscapes(root).mask(FIRST)


def test_a_value_that_is_no_label_is_refused(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path)
    path = root / "gtFine" / "train" / "aachen" / f"{FIRST}_gtFine_labelIds.png"
    PIL.Image.fromarray(np.full((48, 96), 34, np.uint8)).save(path)
    with pytest.raises(PeersegError, match=r"labelIds.png' holds the value 34 on 4608 pixels, expected one of the 19"):
        Cityscapes(root).mask(FIRST)


@pytest.mark.parametrize("part", ["train", "val"])
def test_a_missing_part_is_named_with_the_tree(tmp_path: Path, part: str) -> None:
    root = write_cityscapes(tmp_path)
    shutil.rmtree(root / "leftImg8bit" / part)
    with pytest.raises(PeersegError) as caught:
        Cityscapes(root)
    folder = str(root / "leftImg8bit" / part)
    assert str(caught.value) == f"{folder!r} holds no *_leftImg8bit.png: data.root must hold {TREE}"


def test_a_missing_mask_is_named(tmp_path: Path) -> None:
    root = write_cityscapes(tmp_path)
    shutil.rmtree(root / "gtFine" / "train" / "aachen")
    with pytest.raises(PeersegError, match=r"aachen_000000_000019_gtFine_labelIds.png' does not exist"):
        Cityscapes(root).mask(FIRST)
