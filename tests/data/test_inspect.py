"""The look at every mask before training: what cannot be learned from is refused, the rest is counted."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest

from conftest import write_labels, write_picture
from peerseg.data.dataset import Split
from peerseg.data.folder import ImageFolder
from peerseg.data.inspect import color_statistics, inspect
from peerseg.data.labels import IGNORE, UNLABELED
from peerseg.errors import PeersegError

SPLIT = Split(("img0", "img1", "img2"), ("img5", "img6"), ("img3",))


@pytest.fixture
def declared(folder: Path) -> Path:
    """The folder with a ``classes.yaml`` of three classes, the last of which no mask holds."""
    (folder / "classes.yaml").write_text("classes: [ground, crack, rust]")
    return folder


def save_mask(folder: Path, id: str, *values: int, size: tuple[int, int] = (20, 24)) -> npt.NDArray[np.uint8]:
    """Write a mask that shows these values in turn."""
    mask = np.resize(np.array(values, np.uint8), size)
    PIL.Image.fromarray(mask).save(folder / "masks" / f"{id}.png")
    return mask


def test_pixels_are_counted_by_part(declared: Path) -> None:
    dataset = ImageFolder(declared)
    found = inspect(dataset, SPLIT).pixels
    for part, ids in (("labeled", SPLIT.labeled), ("val", SPLIT.val)):
        masks = [np.asarray(PIL.Image.open(declared / "masks" / f"{id}.png")) for id in ids]
        assert np.array_equal(found[part], np.bincount(np.stack(masks).ravel(), minlength=256))


def test_every_id_is_watched(declared: Path) -> None:
    seen: list[tuple[list[str], str]] = []

    def watch(ids: Iterable[str], what: str) -> Iterable[str]:
        seen.append((list(ids), what))
        return ids

    inspect(ImageFolder(declared), SPLIT, watch)
    assert seen == [(list(SPLIT.labeled), "reading labeled masks"), (list(SPLIT.val), "reading val masks")]


def test_masks_of_unlabeled_images_are_not_touched(declared: Path) -> None:
    split = Split(("img0", "img1"), ("img2", "img4"), ("img3",))
    before = inspect(ImageFolder(declared), split)
    (declared / "masks" / "img2.png").write_bytes(b"broken")
    save_mask(declared, "img4", 99)
    after = inspect(ImageFolder(declared), split)
    assert after.notes == before.notes
    assert all(np.array_equal(after.pixels[part], before.pixels[part]) for part in ("labeled", "val"))


def test_partly_labeled_images_are_found(declared: Path) -> None:
    save_mask(declared, "img1", 0, 1, UNLABELED)
    save_mask(declared, "img2", 0, 1, IGNORE)
    save_mask(declared, "img3", 0, UNLABELED)
    assert inspect(ImageFolder(declared), SPLIT).partly == ("img1",)


def test_a_class_that_never_occurs_is_said(declared: Path) -> None:
    save_mask(declared, "img3", 0, IGNORE)
    labeled, val = inspect(ImageFolder(declared), SPLIT).notes
    assert labeled.startswith("no labeled mask holds rust:")
    assert val.startswith("no val mask holds crack, rust:")


def test_a_long_list_of_absent_classes_is_cut(folder: Path) -> None:
    (folder / "classes.yaml").write_text(f"classes: {[f'c{k}' for k in range(30)]}")
    labeled, val = inspect(ImageFolder(folder), SPLIT).notes
    assert labeled.startswith("no labeled mask holds c2, c3, c4, c5, c6, c7, c8, c9, c10, c11 and 18 more:")
    assert "c11 and 18 more" in val


def test_nothing_is_said_where_every_class_occurs(folder: Path) -> None:
    assert inspect(ImageFolder(folder), SPLIT).notes == ()


@pytest.mark.parametrize(
    ("split", "part"), [(Split((), ("a",), ("img0",)), "labeled"), (Split(("img0",), (), ()), "val")]
)
def test_an_empty_list_is_refused(declared: Path, split: Split, part: str) -> None:
    with pytest.raises(PeersegError, match=f"the {part} list is empty, expected at least one image with a mask"):
        inspect(ImageFolder(declared), split)


def test_a_listed_image_without_mask_is_named(declared: Path) -> None:
    split = Split(("img0", "img7"), (), ("img1",))
    with pytest.raises(PeersegError, match=r"img7\.png' is listed with a mask but has none: add the mask"):
        inspect(ImageFolder(declared), split)


def test_image_and_mask_of_different_size_are_named(declared: Path) -> None:
    save_mask(declared, "img1", 0, 1, size=(24, 20))
    with pytest.raises(
        PeersegError, match=r"img1\.png' is 20 x 24 pixels but its mask is 24 x 20: expected the same size"
    ):
        inspect(ImageFolder(declared), SPLIT)


def test_a_turned_phone_picture_fits_its_upright_mask(declared: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    PIL.Image.new("RGB", (24, 20)).save(declared / "images" / "img1.png", exif=exif)
    with pytest.raises(PeersegError, match=r"img1\.png' is 24 x 20 pixels but its mask is 20 x 24"):
        inspect(ImageFolder(declared), SPLIT)
    save_mask(declared, "img1", 0, 1, size=(24, 20))
    assert inspect(ImageFolder(declared), SPLIT).pixels["labeled"].sum() == 3 * 20 * 24


def test_a_mask_value_outside_the_classes_is_named(declared: Path) -> None:
    save_mask(declared, "img1", 0, 1, 1, 7)
    with pytest.raises(
        PeersegError, match=r"masks/img1\.png' holds the value 7 on 120 pixels, expected one of the 3 classes"
    ):
        inspect(ImageFolder(declared), SPLIT)


@pytest.mark.parametrize("values", [(IGNORE,), (UNLABELED,), (UNLABELED, IGNORE)])
def test_masks_without_any_class_are_refused(declared: Path, values: tuple[int, ...]) -> None:
    for id in SPLIT.labeled:
        save_mask(declared, id, *values)
    with pytest.raises(PeersegError, match="hold no class at all, only ignore or unlabeled pixels: label some pixels"):
        inspect(ImageFolder(declared), SPLIT)


@pytest.mark.parametrize("value", [0, 1])
def test_one_class_and_255_are_never_quietly_accepted(declared: Path, value: int) -> None:
    for id in SPLIT.labeled:
        save_mask(declared, id, value, IGNORE)
    expected = (
        rf"hold only the values {value} and 255, and 255 means ignore: if 255 is a class, declare it in classes\.yaml"
    )
    with pytest.raises(PeersegError, match=expected):
        inspect(ImageFolder(declared), SPLIT)


def test_a_declared_binary_mask_is_mapped(folder: Path) -> None:
    (folder / "classes.yaml").write_text("classes: {0: ground, 255: crack}")
    for k in range(5):
        save_mask(folder, f"img{k}", 0, 255, 255)
    pixels = inspect(ImageFolder(folder), SPLIT).pixels["labeled"]
    assert pixels[:2].tolist() == [480, 960]
    assert pixels.sum() == 1440


@pytest.mark.parametrize(("dtype", "full"), [(np.uint8, 255), (np.uint16, 65535), (np.float32, 1)])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_color_statistics_are_those_of_all_pixels(
    tmp_path: Path, dtype: npt.DTypeLike, full: int, channels: int
) -> None:
    stack = (np.random.default_rng(0).random((3, 6, 8, channels)) * full).astype(dtype)
    for k, pixels in enumerate(stack):
        write_labels(tmp_path / "masks" / f"{k}.png", seed=k, size=(6, 8))
        (tmp_path / "images").mkdir(exist_ok=True)
        np.save(tmp_path / "images" / f"{k}.npy", pixels)
    mean, std = color_statistics(ImageFolder(tmp_path), ["0", "1", "2"])
    assert mean == pytest.approx(stack.mean(axis=(0, 1, 2), dtype=np.float64) / full, abs=1e-6)
    assert std == pytest.approx(stack.std(axis=(0, 1, 2), dtype=np.float64) / full, abs=1e-6)


def test_a_constant_channel_has_no_zero_deviation(folder: Path) -> None:
    PIL.Image.new("RGB", (24, 20)).save(folder / "images" / "img0.png")
    mean, std = color_statistics(ImageFolder(folder), ["img0"])
    assert mean == (0, 0, 0)
    assert all(0 < value < 0.001 for value in std)


def test_images_of_different_channels_are_named(folder: Path) -> None:
    PIL.Image.new("L", (24, 20)).save(folder / "images" / "img1.png")
    with pytest.raises(PeersegError, match=r"img1\.png' has 1 channels, the images before have 3"):
        color_statistics(ImageFolder(folder), ["img0", "img1"])


def test_every_image_counts_alike_whatever_its_size(folder: Path) -> None:
    write_picture(folder / "images" / "img0.png", size=(40, 48))
    PIL.Image.new("RGB", (2, 2)).save(folder / "images" / "img1.png")
    alone, _ = color_statistics(ImageFolder(folder), ["img0"])
    both, _ = color_statistics(ImageFolder(folder), ["img0", "img1"])
    assert both == pytest.approx([value / 2 for value in alone])
