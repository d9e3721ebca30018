"""Single files: pictures come back as they were stored, and broken ones are named in one sentence."""

import struct
import sys
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest
import tifffile

from peerseg.data.files import (
    IMAGE_SUFFIXES,
    MASK_SUFFIXES,
    find_files,
    image_size,
    mask_palette,
    read_image,
    read_stored_mask,
    write_mask,
)
from peerseg.data.labels import IGNORE, UNLABELED, LabelSpace
from peerseg.errors import PeersegError

READERS = [read_image, read_stored_mask, image_size]


def random_pixels(*shape: int, dtype: npt.DTypeLike = np.uint8) -> npt.NDArray[Any]:
    return np.random.default_rng(0).integers(0, 2 ** (8 * min(np.dtype(dtype).itemsize, 2)), shape).astype(dtype)


def write_deep_png(path: Path, pixels: npt.NDArray[np.uint16]) -> None:
    """Write a 16-bit RGB or RGBA PNG by hand: Pillow cannot."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 16, {3: 2, 4: 6}[channels], 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in chunks))


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".webp", ".npy"])
def test_lossless_pictures_come_back_as_stored(tmp_path: Path, suffix: str) -> None:
    path, pixels = tmp_path / f"a{suffix}", random_pixels(6, 7, 3)
    if suffix == ".npy":
        np.save(path, pixels)
    else:
        PIL.Image.fromarray(pixels).save(path, **({"lossless": True} if suffix == ".webp" else {}))
    assert np.array_equal(read_image(path), pixels)
    assert image_size(path) == (6, 7)


def test_jpeg_comes_back_nearly(tmp_path: Path) -> None:
    smooth = np.repeat(np.indices((16, 24)).sum(axis=0)[..., None] * 5, 3, axis=2).astype(np.uint8)
    PIL.Image.fromarray(smooth).save(tmp_path / "a.JPG", quality=95)
    assert np.abs(read_image(tmp_path / "a.JPG").astype(int) - smooth).mean() < 3
    assert image_size(tmp_path / "a.JPG") == (16, 24)


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_arrays_of_any_channels_come_back_as_stored(tmp_path: Path, channels: int, dtype: npt.DTypeLike) -> None:
    pixels = random_pixels(6, 7, channels, dtype=dtype)
    np.save(tmp_path / "a.npy", pixels)
    image = read_image(tmp_path / "a.npy")
    assert image.dtype == dtype
    assert np.array_equal(image, pixels)


@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
def test_sixteen_bit_gray_keeps_every_bit(tmp_path: Path, suffix: str) -> None:
    path, pixels = tmp_path / f"a{suffix}", random_pixels(6, 7, dtype=np.uint16)
    if suffix == ".npy":
        np.save(path, pixels)
    else:
        PIL.Image.fromarray(pixels).save(path)
    image = read_image(path)
    assert image.dtype == np.uint16
    assert np.array_equal(image, pixels[..., None])


@pytest.mark.parametrize("channels", [3, 4])
def test_sixteen_bit_color_png_keeps_every_bit(tmp_path: Path, channels: int) -> None:
    pixels = random_pixels(6, 7, channels, dtype=np.uint16)
    write_deep_png(tmp_path / "a.png", pixels)
    image = read_image(tmp_path / "a.png")
    assert image.dtype == np.uint16
    assert np.array_equal(image, pixels)
    assert image_size(tmp_path / "a.png") == (6, 7)


@pytest.mark.parametrize("planes", ["contig", "separate", "pages"])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_tiff_keeps_every_band(tmp_path: Path, planes: str, dtype: npt.DTypeLike) -> None:
    pixels = random_pixels(16, 17, 5, dtype=dtype)
    stored = pixels if planes == "contig" else np.ascontiguousarray(np.moveaxis(pixels, -1, 0))
    layout = {} if planes == "pages" else {"planarconfig": planes}
    tifffile.imwrite(tmp_path / "a.tif", stored, photometric="minisblack", **layout)
    image = read_image(tmp_path / "a.tif")
    assert image.dtype == dtype
    assert np.array_equal(image, pixels)
    assert image_size(tmp_path / "a.tif") == (16, 17)


def test_sixteen_bit_color_tiff_keeps_every_bit(tmp_path: Path) -> None:
    pixels = random_pixels(6, 7, 3, dtype=np.uint16)
    tifffile.imwrite(tmp_path / "a.tif", pixels, photometric="rgb")
    image = read_image(tmp_path / "a.tif")
    assert image.dtype == np.uint16
    assert np.array_equal(image, pixels)


def test_many_bands_need_one_more_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tifffile.imwrite(tmp_path / "a.tif", random_pixels(16, 17, 5), photometric="minisblack", planarconfig="contig")
    monkeypatch.setitem(sys.modules, "tifffile", None)
    with pytest.raises(PeersegError, match=r"a\.tif' has bands .*pip install tifffile"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize(
    ("mode", "suffix", "channels"),
    [
        ("1", ".png", 1),
        ("L", ".png", 1),
        ("LA", ".png", 1),
        ("P", ".png", 3),
        ("RGB", ".png", 3),
        ("RGBA", ".png", 4),
        ("CMYK", ".tif", 3),
    ],
)
def test_channels_follow_what_the_picture_shows(tmp_path: Path, mode: str, suffix: str, channels: int) -> None:
    PIL.Image.fromarray(random_pixels(6, 7, 3)).convert(mode).save(tmp_path / f"a{suffix}")
    image = read_image(tmp_path / f"a{suffix}")
    assert image.dtype == np.uint8
    assert image.shape == (6, 7, channels)


def test_a_palette_picture_shows_its_colors(tmp_path: Path) -> None:
    write_mask(tmp_path / "a.png", np.array([[0, 1]], np.uint8), LabelSpace(("a", "b"), ((1, 2, 3), (4, 5, 6))))
    assert read_image(tmp_path / "a.png").tolist() == [[[1, 2, 3], [4, 5, 6]]]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_phone_picture_stands_upright(tmp_path: Path, orientation: int) -> None:
    """Orientation 6 is the phone's usual one: a quarter turn clockwise brings it upright."""
    pixels = random_pixels(6, 7, 3)
    exif = PIL.Image.Exif()
    exif[0x0112] = orientation
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    upright = {
        1: pixels,
        2: pixels[:, ::-1],
        3: pixels[::-1, ::-1],
        4: pixels[::-1],
        5: pixels.transpose(1, 0, 2),
        6: np.rot90(pixels, -1),
        7: np.rot90(pixels, 2).transpose(1, 0, 2),
        8: np.rot90(pixels),
    }[orientation]
    assert np.array_equal(read_image(tmp_path / "a.png"), upright)
    assert image_size(tmp_path / "a.png") == upright.shape[:2]


@pytest.mark.parametrize(
    "stored",
    [
        np.zeros((4, 5), np.int64),
        np.zeros((4, 5, 3), np.float64),
        np.zeros((2, 4, 5, 3), np.uint8),
        np.zeros(4, np.uint8),
    ],
    ids=["int64", "float64", "four axes", "one axis"],
)
def test_an_array_that_is_no_picture_is_refused(tmp_path: Path, stored: npt.NDArray[Any]) -> None:
    np.save(tmp_path / "a.npy", stored)
    with pytest.raises(
        PeersegError, match=r"a\.npy' holds .* of shape .*, expected \(height, width, channels\) of uint8"
    ):
        read_image(tmp_path / "a.npy")


@pytest.mark.parametrize(("dtype", "value"), [(np.int32, 2**16), (np.int32, -1), (np.int16, -1)])
def test_numbers_beyond_sixteen_bits_are_refused_not_wrapped(tmp_path: Path, dtype: npt.DTypeLike, value: int) -> None:
    tifffile.imwrite(tmp_path / "a.tif", np.full((16, 17), value, dtype), photometric="minisblack")
    with pytest.raises(PeersegError, match=r"holds int.*expected .*uint16"):
        read_image(tmp_path / "a.tif")


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("suffix", [".png", ".tif", ".npy"])
def test_an_empty_file_is_named(tmp_path: Path, read: Any, suffix: str) -> None:
    (tmp_path / f"a{suffix}").touch()
    with pytest.raises(PeersegError, match=rf"a\{suffix}' cannot be read as an image .*empty.*replace or remove it"):
        read(tmp_path / f"a{suffix}")


@pytest.mark.parametrize("read", [read_image, read_stored_mask])
@pytest.mark.parametrize("suffix", [".png", ".jpg", ".tif", ".bmp", ".webp"])
def test_a_truncated_file_is_named_in_one_line(tmp_path: Path, read: Any, suffix: str) -> None:
    path = tmp_path / f"a{suffix}"
    PIL.Image.fromarray(random_pixels(40, 40, 3)).save(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(PeersegError, match=rf"a\{suffix}' cannot be read as an image") as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_truncated_deep_png_is_named(tmp_path: Path) -> None:
    write_deep_png(tmp_path / "a.png", random_pixels(40, 40, 3, dtype=np.uint16))
    (tmp_path / "a.png").write_bytes((tmp_path / "a.png").read_bytes()[:2000])
    with pytest.raises(PeersegError, match=r"a\.png' cannot be read as an image"):
        read_image(tmp_path / "a.png")


@pytest.mark.parametrize("suffix", [".png", ".tif", ".jpg"])
def test_a_file_that_is_no_picture_is_named(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a{suffix}").write_bytes(b"no picture at all, but long enough to look into")
    with pytest.raises(PeersegError, match=rf"a\{suffix}' cannot be read as an image"):
        read_image(tmp_path / f"a{suffix}")


# Pillow also warns of headers that are cut short; what is tested is what is raised.
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_any_truncation_is_one_sentence(tmp_path: Path) -> None:
    """Whatever a decoder raises on a file cut at any place, the reader is told which file it is."""
    tifffile.imwrite(tmp_path / "whole.tif", random_pixels(6, 7, 5), photometric="minisblack", planarconfig="contig")
    write_deep_png(tmp_path / "whole.png", random_pixels(6, 7, 3, dtype=np.uint16))
    np.save(tmp_path / "whole.npy", random_pixels(6, 7, 3))
    for whole in list(tmp_path.iterdir()):
        data, cut = whole.read_bytes(), tmp_path / f"cut{whole.suffix}"
        for length in range(0, len(data), 7):
            cut.write_bytes(data[:length])
            # A file that lacks only its last bytes may still be whole to a decoder.
            with suppress(PeersegError):
                read_image(cut)


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], object), allow_pickle=True)
    for read in READERS:
        with pytest.raises(PeersegError, match=r"a\.npy' cannot be read .*allow_pickle"):
            read(tmp_path / "a.npy")


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize("limit", [30, 10])
def test_a_decompression_bomb_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: Any, limit: int
) -> None:
    """Pillow warns beyond the limit and raises beyond twice the limit: both are refused."""
    PIL.Image.fromarray(random_pixels(6, 7)).save(tmp_path / "a.png")
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", limit)
    with pytest.raises(PeersegError, match=rf"a\.png' would unpack to more than {limit} pixels"):
        read(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["deep.png", "bands.tif"])
def test_a_bomb_of_another_decoder_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write_deep_png(tmp_path / "deep.png", random_pixels(6, 7, 3, dtype=np.uint16))
    tifffile.imwrite(tmp_path / "bands.tif", random_pixels(6, 7, 5), photometric="minisblack", planarconfig="contig")
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 30)
    with pytest.raises(PeersegError, match=f"{name}' would unpack to more than 30 pixels"):
        read_image(tmp_path / name)


def test_files_are_found_at_any_depth_by_any_suffix(tmp_path: Path) -> None:
    names = [
        "b.PNG",
        "a.jpg",
        "deep/er/c.tiff",
        "deep/v1.2.webp",
        "._a.jpg",
        "notes.txt",
        "deep/.hidden.png",
        ".cache/d.png",
    ]
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = find_files(tmp_path, IMAGE_SUFFIXES)
    expected = {"a": "a.jpg", "b": "b.PNG", "deep/er/c": "deep/er/c.tiff", "deep/v1.2": "deep/v1.2.webp"}
    assert found == {id: tmp_path / name for id, name in expected.items()}


def test_a_missing_folder_holds_no_files(tmp_path: Path) -> None:
    assert find_files(tmp_path / "nowhere", MASK_SUFFIXES) == {}


def test_two_files_of_one_id_are_refused(tmp_path: Path) -> None:
    for name in ("a.jpg", "a.png"):
        (tmp_path / name).touch()
    with pytest.raises(PeersegError, match=r"a\.jpg' and .*a\.png' have the same id 'a': rename or remove one"):
        find_files(tmp_path, IMAGE_SUFFIXES)


def test_a_written_mask_is_read_back_with_its_palette(tmp_path: Path) -> None:
    labels = np.array([[0, 1, UNLABELED], [1, 0, IGNORE]], np.uint8)
    write_mask(tmp_path / "a.png", labels, LabelSpace(("a", "b"), ((1, 2, 3), (4, 5, 6))))
    assert np.array_equal(read_stored_mask(tmp_path / "a.png"), labels)
    palette = mask_palette(tmp_path / "a.png")
    assert palette is not None
    assert palette[:2] == [(1, 2, 3), (4, 5, 6)]


def test_a_mask_without_palette_has_none(tmp_path: Path) -> None:
    PIL.Image.fromarray(random_pixels(4, 5)).save(tmp_path / "a.png")
    np.save(tmp_path / "a.npy", random_pixels(4, 5))
    assert mask_palette(tmp_path / "a.png") is None
    assert mask_palette(tmp_path / "a.npy") is None


def test_masks_keep_their_numbers(tmp_path: Path) -> None:
    deep = random_pixels(4, 5, dtype=np.uint16)
    PIL.Image.fromarray(deep).save(tmp_path / "deep.png")
    np.save(tmp_path / "deep.npy", deep)
    PIL.Image.fromarray(deep > 9).save(tmp_path / "bits.png")
    assert np.array_equal(read_stored_mask(tmp_path / "deep.png"), deep)
    assert np.array_equal(read_stored_mask(tmp_path / "deep.npy"), deep)
    assert np.array_equal(read_stored_mask(tmp_path / "bits.png"), (deep > 9).astype(np.uint8))
    assert read_stored_mask(tmp_path / "bits.png").dtype == np.uint8


@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
def test_masks_in_color_keep_their_colors(tmp_path: Path, mode: str) -> None:
    pixels = random_pixels(4, 5, 3)
    PIL.Image.fromarray(pixels).convert(mode).save(tmp_path / "a.png")
    assert np.array_equal(read_stored_mask(tmp_path / "a.png"), pixels)


def test_a_gray_mask_with_opacity_keeps_its_numbers(tmp_path: Path) -> None:
    pixels = random_pixels(4, 5)
    PIL.Image.fromarray(pixels).convert("LA").save(tmp_path / "a.png")
    assert np.array_equal(read_stored_mask(tmp_path / "a.png"), pixels)


def test_an_array_mask_may_have_one_channel_behind(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 4, 1), np.uint8))
    assert read_stored_mask(tmp_path / "a.npy").shape == (3, 4)


@pytest.mark.parametrize("shape", [(4,), (3, 4, 2), (1, 3, 4, 3)])
def test_an_array_that_is_no_mask_is_refused(tmp_path: Path, shape: tuple[int, ...]) -> None:
    np.save(tmp_path / "a.npy", np.ones(shape, np.uint8))
    with pytest.raises(PeersegError, match=r"a\.npy' has the shape .*, expected \(height, width\), or 3 colors behind"):
        read_stored_mask(tmp_path / "a.npy")
