"""Pascal VOC 2012, on a fake of its tree."""

import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from fakes import write_voc
from peerseg.data import Voc
from peerseg.data.labels import IGNORE
from peerseg.data.voc import SPACE, TREE
from peerseg.errors import PeersegError


def test_the_21_classes_have_their_published_colors() -> None:
    assert len(SPACE) == 21
    assert dict(zip(SPACE.names, SPACE.colors, strict=True))["person"] == (192, 128, 128)
    assert (SPACE.names[0], SPACE.colors[0], SPACE.names[20]) == ("background", (0, 0, 0), "tvmonitor")


def test_training_images_are_those_of_the_aug_masks_that_do_not_judge(tmp_path: Path) -> None:
    data = Voc(write_voc(tmp_path, train=12, val=2), ratio=4)
    split = data.split()
    assert split.val == ("2007_000000", "2007_000007")
    train = [f"2007_{k:06d}" for k in range(14) if k not in (0, 7)]
    assert split.labeled == tuple(train[::4])
    assert sorted((*split.labeled, *split.unlabeled)) == train
    assert sorted(data.ids) == sorted((*train, *split.val))
    (note,) = data.notes
    assert (
        note == "this is not a published split of Pascal VOC 2012: it has 12 training images, and 10582 were published"
    )


def test_val_masks_are_the_official_ones_and_the_others_the_augmented(tmp_path: Path) -> None:
    root = write_voc(tmp_path)
    for id, folder in (("2007_000000", "SegmentationClass"), ("2007_000001", "SegmentationClassAug")):
        PIL.Image.fromarray(np.full((50, 70), 20, np.uint8)).save(root / folder / f"{id}.png")
    data = Voc(root)
    assert np.unique(data.mask("2007_000000")).tolist() == [20]
    assert np.unique(data.mask("2007_000001")).tolist() == [20]


def test_palette_index_and_color_masks_mean_the_same(tmp_path: Path) -> None:
    root = write_voc(tmp_path)
    data, path = Voc(root), root / "SegmentationClass" / "2007_000000.png"
    with PIL.Image.open(path) as palette:
        assert palette.mode == "P"
        indices = np.asarray(palette)
        colored = np.asarray(palette.convert("RGB")).copy()
    wanted = data.mask("2007_000000")
    assert wanted is not None
    assert np.array_equal(wanted, indices)
    assert wanted[0, 0] == IGNORE
    colored[indices == IGNORE] = (224, 224, 192)
    PIL.Image.fromarray(colored).save(path)
    assert np.array_equal(data.mask("2007_000000"), wanted)


@pytest.mark.parametrize("value", [21, 254])
def test_a_value_that_is_no_class_is_refused(tmp_path: Path, value: int) -> None:
    root = write_voc(tmp_path)
    PIL.Image.fromarray(np.full((50, 70), value, np.uint8)).save(root / "SegmentationClassAug" / "2007_000001.png")
    with pytest.raises(
        PeersegError, match=rf"2007_000001.png' holds the value {value} on 3500 pixels, expected one of the 21"
    ):
        Voc(root).mask("2007_000001")


@pytest.mark.parametrize("folder", ["JPEGImages", "SegmentationClass", "SegmentationClassAug"])
def test_a_missing_folder_is_named_with_the_tree(tmp_path: Path, folder: str) -> None:
    root = write_voc(tmp_path)
    shutil.rmtree(root / folder)
    with pytest.raises(PeersegError) as caught:
        Voc(root)
    assert (
        str(caught.value) == f"{str(root / folder)!r} is no folder: data.root must be VOCdevkit/VOC2012 and hold {TREE}"
    )


def test_a_missing_list_photograph_or_mask_is_named(tmp_path: Path) -> None:
    root = write_voc(tmp_path)
    (root / "SegmentationClass" / "2007_000000.png").unlink()
    with pytest.raises(
        PeersegError, match=r"SegmentationClass/2007_000000.png' does not exist, expected an image there"
    ):
        Voc(root).mask("2007_000000")
    (root / "JPEGImages" / "2007_000003.jpg").unlink()
    with pytest.raises(
        PeersegError, match=r"2007_000003.jpg' does not exist, but the lists name it: unpack the photographs"
    ):
        Voc(root)
    (root / "ImageSets" / "Segmentation" / "val.txt").unlink()
    with pytest.raises(PeersegError, match=r"val.txt' does not exist, expected a list of ids"):
        Voc(root)
