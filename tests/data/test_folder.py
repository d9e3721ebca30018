"""Your own folder: what it may look like, how it is split, and the message for every way it may be wrong."""

import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from conftest import write_labels, write_picture
from peerseg.data.folder import ImageFolder
from peerseg.data.labels import IGNORE, UNLABELED
from peerseg.errors import PeersegError


def write_list(folder: Path, name: str, *ids: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.txt").write_text("".join(f"{id}\n" for id in ids))


def test_an_image_without_a_mask_is_unlabeled(folder: Path) -> None:
    dataset = ImageFolder(folder)
    split = dataset.split()
    assert dataset.ids == tuple(f"img{k}" for k in range(8))
    assert {*split.labeled, *split.val} == {f"img{k}" for k in range(5)}
    assert split.unlabeled == ("img5", "img6", "img7")
    assert dataset.mask("img5") is None


def test_images_and_masks_are_those_of_the_files(folder: Path) -> None:
    dataset = ImageFolder(folder)
    assert np.array_equal(dataset.image("img1"), np.asarray(PIL.Image.open(folder / "images" / "img1.png")))
    mask = dataset.mask("img1")
    assert mask is not None
    assert mask.dtype == np.uint8
    assert np.array_equal(mask, np.asarray(PIL.Image.open(folder / "masks" / "img1.png")))
    assert dataset.size("img1") == (20, 24)
    assert dataset.file("img1") == str(folder / "images" / "img1.png")


def test_any_depth_and_any_extension(folder: Path) -> None:
    write_picture(folder / "images" / "berlin" / "day1" / "a.b.jpg")
    write_labels(folder / "masks" / "berlin" / "day1" / "a.b.tif")
    write_picture(folder / "unlabeled" / "rome" / "c.JPEG")
    dataset = ImageFolder(folder)
    assert {"berlin/day1/a.b", "unlabeled/rome/c"} < set(dataset.ids)
    assert dataset.mask("berlin/day1/a.b") is not None
    assert dataset.split().unlabeled == ("img5", "img6", "img7", "unlabeled/rome/c")


def test_classes_are_found_and_said(folder: Path) -> None:
    dataset = ImageFolder(folder)
    assert dataset.label_space.names == ("class 0", "class 1")
    assert any("no classes.yaml: found 2 classes in the masks" in note for note in dataset.notes)


def test_declared_classes_are_not_looked_for(folder: Path) -> None:
    (folder / "classes.yaml").write_text("classes: [ground, crack, rust]")
    dataset = ImageFolder(folder)
    assert dataset.label_space.names == ("ground", "crack", "rust")
    assert not any("classes" in note for note in dataset.notes)


def test_a_binary_mask_is_mapped_when_declared(folder: Path) -> None:
    (folder / "classes.yaml").write_text("classes: {0: ground, 255: crack}")
    stored = np.resize(np.array([0, 255], np.uint8), (20, 24))
    PIL.Image.fromarray(stored).save(folder / "masks" / "img0.png")
    mask = ImageFolder(folder).mask("img0")
    assert mask is not None
    assert np.array_equal(mask, stored // 255)


def test_color_masks_are_read_by_their_table(folder: Path) -> None:
    (folder / "classes.yaml").write_text(
        "classes: {0: {name: road, color: '#804080'}, 1: {name: sky, color: [70, 130, 180]}}\nignore: '#000000'"
    )
    stored = np.array([[128, 64, 128], [70, 130, 180], [0, 0, 0]], np.uint8)
    PIL.Image.fromarray(np.resize(stored, (20, 24, 3))).save(folder / "masks" / "img0.png")
    mask = ImageFolder(folder).mask("img0")
    assert mask is not None
    assert np.array_equal(mask, np.resize(np.array([0, 1, IGNORE], np.uint8), (20, 24)))


def test_both_states_pass_through(folder: Path) -> None:
    stored = np.resize(np.array([0, 1, UNLABELED, IGNORE], np.uint8), (20, 24))
    PIL.Image.fromarray(stored).save(folder / "masks" / "img0.png")
    dataset = ImageFolder(folder)
    mask = dataset.mask("img0")
    assert mask is not None
    assert np.array_equal(mask, stored)
    assert len(dataset.label_space) == 2


def test_a_val_list_is_drawn_and_said(folder: Path) -> None:
    dataset = ImageFolder(folder, val=0.4, seed=1)
    split = dataset.split()
    assert (len(split.labeled), len(split.val)) == (3, 2)
    assert any("no val.txt: drew 2 of the 5 labeled images to judge by (seed 1)" in note for note in dataset.notes)
    assert ImageFolder(folder, val=0.4, seed=1).split() == split
    assert len({ImageFolder(folder, val=0.4, seed=seed).split().val for seed in range(8)}) > 2


def test_a_val_list_is_obeyed_in_silence(folder: Path) -> None:
    write_list(folder, "val", "img1", "images/img3.png")
    dataset = ImageFolder(folder)
    split = dataset.split()
    assert split.val == ("img1", "img3")
    assert split.labeled == ("img0", "img2", "img4")
    assert split.unlabeled == ("img5", "img6", "img7")
    assert not any("val" in note for note in dataset.notes)


def test_masked_images_outside_the_labeled_list_are_unlabeled(folder: Path) -> None:
    write_list(folder, "labeled", "img0")
    write_list(folder, "val", "img1")
    split = ImageFolder(folder).split()
    assert split.labeled == ("img0",)
    assert split.unlabeled == ("img2", "img3", "img4", "img5", "img6", "img7")


def test_val_is_drawn_from_the_labeled_list(folder: Path) -> None:
    write_list(folder, "labeled", "img0", "img1", "img2")
    split = ImageFolder(folder).split()
    assert len(split.val) == 1
    assert {*split.labeled, *split.val} == {"img0", "img1", "img2"}
    assert split.unlabeled == ("img3", "img4", "img5", "img6", "img7")


def test_an_unlabeled_list_is_obeyed(folder: Path) -> None:
    write_list(folder, "labeled", "img0", "img2")
    write_list(folder, "val", "img1")
    write_list(folder, "unlabeled", "img6", "img3")
    split = ImageFolder(folder).split()
    assert (split.labeled, split.unlabeled, split.val) == (("img0", "img2"), ("img6", "img3"), ("img1",))


def test_listed_unlabeled_images_are_not_learned_from_with_their_masks(folder: Path) -> None:
    write_list(folder, "unlabeled", "img0", "img6")
    write_list(folder, "val", "img1")
    split = ImageFolder(folder).split()
    assert (split.labeled, split.unlabeled) == (("img2", "img3", "img4"), ("img0", "img6"))


def test_a_train_list_bounds_what_is_learned_from(folder: Path) -> None:
    write_picture(folder / "unlabeled" / "u.png")
    write_list(folder, "train", "img0", "img1", "img6")
    write_list(folder, "val", "img4")
    split = ImageFolder(folder).split()
    assert split.labeled == ("img0", "img1")
    assert split.unlabeled == ("img6", "unlabeled/u")
    assert split.val == ("img4",)


def test_lists_may_lie_elsewhere(folder: Path, tmp_path: Path) -> None:
    write_list(folder, "val", "img0")
    write_list(tmp_path / "lists", "labeled", "img1")
    write_list(tmp_path / "lists", "val", "img2")
    split = ImageFolder(folder, lists=tmp_path / "lists").split()
    assert (split.labeled, split.val) == (("img1",), ("img2",))


@pytest.mark.parametrize("given", ["img0.png", "images/img0.png", "img0", "images/img0"])
def test_lists_name_ids_or_files(folder: Path, given: str) -> None:
    write_list(folder, "val", given)
    assert ImageFolder(folder).split().val == ("img0",)


def test_masks_of_unlabeled_images_change_neither_classes_nor_split(folder: Path) -> None:
    """Not even a class that only they hold, and not even when nobody declared the classes."""
    write_list(folder, "labeled", "img0", "img1")
    write_list(folder, "val", "img2")
    write_list(folder, "unlabeled", "img3", "img4", "img5")
    write_labels(folder / "masks" / "img3.png", classes=7)
    before = ImageFolder(folder)
    for id in ("img3", "img4"):
        (folder / "masks" / f"{id}.png").unlink()
    after = ImageFolder(folder)
    assert before.split() == after.split()
    assert before.label_space == after.label_space
    assert tuple(before.notes) == tuple(after.notes)


def test_an_unreadable_mask_of_an_unlabeled_image_is_not_read(folder: Path) -> None:
    write_list(folder, "labeled", "img0", "img1")
    write_list(folder, "val", "img2")
    (folder / "masks" / "img3.png").write_bytes(b"broken")
    assert "img3" in ImageFolder(folder).split().unlabeled


def test_a_missing_root_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        PeersegError, match=r"nowhere' is no folder, expected ROOT/images/\*\.jpg and ROOT/masks/\*\.png"
    ):
        ImageFolder(tmp_path / "nowhere")


def test_a_root_without_images_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"images' is no folder, expected ROOT/images"):
        ImageFolder(tmp_path)


@pytest.mark.parametrize("name", ["nowhere", "photos/images"])
def test_a_lists_folder_without_lists_is_named(folder: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(
        PeersegError, match=rf"{name}' holds none of train\.txt, val\.txt, labeled\.txt, unlabeled\.txt"
    ):
        ImageFolder(folder, lists=tmp_path / name)


@pytest.mark.parametrize("suffix", [".jpg", ".JPEG", ".webp"])
def test_a_mask_in_a_lossy_format_is_refused(folder: Path, suffix: str) -> None:
    write_picture(folder / "masks" / f"img6{suffix}")
    with pytest.raises(PeersegError, match=rf"img6\{suffix}' is no mask: lossy formats change class values"):
        ImageFolder(folder)


@pytest.mark.parametrize("val", [0.0, 1.0, -0.1, 5])
def test_a_share_outside_zero_to_one_is_refused(folder: Path, val: float) -> None:
    with pytest.raises(PeersegError, match=f"data.val is {val}, expected a share between 0 and 1"):
        ImageFolder(folder, val=val)


def test_a_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "notes.txt").touch()
    with pytest.raises(PeersegError, match=r"images' holds no image of \.png, \.jpg"):
        ImageFolder(tmp_path)


def test_a_folder_without_masks_is_refused(folder: Path) -> None:
    shutil.rmtree(folder / "masks")
    with pytest.raises(PeersegError, match=r"0 labeled images were found.*val\.txt: ROOT/images"):
        ImageFolder(folder)


def test_a_mask_without_image_is_named_with_the_nearest_image(folder: Path) -> None:
    write_labels(folder / "masks" / "imgg7.png")
    with pytest.raises(
        PeersegError, match=r"imgg7\.png' has no image of the same name in images/; did you mean 'img7'"
    ):
        ImageFolder(folder)


def test_a_mask_without_image_among_many_is_named(folder: Path) -> None:
    for k in range(20):
        (folder / "images" / f"more{k}.png").touch()
    write_labels(folder / "masks" / "other.png")
    with pytest.raises(
        PeersegError, match=r"other\.png' has no image of the same name in images/; rename or remove it"
    ):
        ImageFolder(folder)


@pytest.mark.parametrize("where", ["images", "masks", "unlabeled"])
def test_duplicate_ids_are_refused(folder: Path, where: str) -> None:
    (folder / where).mkdir(exist_ok=True)
    for suffix in (".png", ".tif"):
        (folder / where / f"img0{suffix}").touch()
    with pytest.raises(PeersegError, match=r"img0\.png' and .*img0\.tif' have the same id 'img0'"):
        ImageFolder(folder)


def test_an_id_of_both_image_folders_is_refused(folder: Path) -> None:
    write_picture(folder / "images" / "unlabeled" / "a.png")
    write_picture(folder / "unlabeled" / "a.png")
    with pytest.raises(PeersegError, match="same id 'unlabeled/a'"):
        ImageFolder(folder)


@pytest.mark.parametrize("masks", [0, 1])
def test_too_few_labeled_images_are_refused(folder: Path, masks: int) -> None:
    (folder / "classes.yaml").write_text("classes: [a, b]")
    for k in range(masks, 5):
        (folder / "masks" / f"img{k}.png").unlink()
    with pytest.raises(PeersegError, match=rf"{masks} labeled images were found.*, expected at least 2 .*val\.txt"):
        ImageFolder(folder)


@pytest.mark.parametrize("name", ["labeled", "val"])
def test_an_empty_list_is_refused(folder: Path, name: str) -> None:
    write_list(folder, "val", "img1")
    write_list(folder, name)
    with pytest.raises(PeersegError, match=f"the {name} list is empty, expected at least one image with a mask"):
        ImageFolder(folder)


@pytest.mark.parametrize("name", ["labeled", "val"])
def test_a_listed_image_without_mask_is_named(folder: Path, name: str) -> None:
    write_list(folder, "labeled", "img0")
    write_list(folder, "val", "img1")
    write_list(folder, name, "img2", "img6")
    with pytest.raises(PeersegError, match=f"'img6' is in the {name} list but has no mask in masks/: add the mask"):
        ImageFolder(folder)


@pytest.mark.parametrize("name", ["train", "val", "labeled", "unlabeled"])
def test_an_id_that_is_no_image_is_named(folder: Path, name: str) -> None:
    write_list(folder, name, "img0", "imgx.png")
    with pytest.raises(
        PeersegError, match=rf"{name}\.txt' names 'imgx', expected an image below images/ or unlabeled/"
    ):
        ImageFolder(folder)


def test_a_list_in_another_encoding_is_refused(folder: Path) -> None:
    (folder / "val.txt").write_bytes(b"stra\xdfe\n")
    with pytest.raises(PeersegError, match=r"val\.txt"):
        ImageFolder(folder)


@pytest.mark.parametrize(("one", "other"), [("labeled", "unlabeled"), ("labeled", "val"), ("unlabeled", "val")])
def test_overlapping_lists_are_refused(folder: Path, one: str, other: str) -> None:
    lists = {"labeled": ["img0"], "unlabeled": ["img5"], "val": ["img1"]}
    lists[one].append("img2")
    lists[other].append("img2")
    for name, ids in lists.items():
        write_list(folder, name, *ids)
    with pytest.raises(PeersegError, match=f"'img2' is in the {one} and in the {other} list"):
        ImageFolder(folder)


def test_an_id_listed_twice_is_refused(folder: Path) -> None:
    write_list(folder, "val", "img1", "img1.png")
    with pytest.raises(PeersegError, match=r"val.txt. names .img1. twice"):
        ImageFolder(folder)


def test_a_list_that_names_an_image_twice_is_refused(folder: Path) -> None:
    (folder / "unlabeled.txt").write_text("img6\nimg7\nimg6.png\n")
    with pytest.raises(PeersegError, match="names 'img6' twice"):
        ImageFolder(folder)
