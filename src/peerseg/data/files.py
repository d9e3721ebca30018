"""Reading and writing single image and mask files; a file that cannot be read is named in one sentence."""

import os
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import PIL.ImageOps
import PIL.TiffImagePlugin

from peerseg.data.dataset import Image
from peerseg.data.labels import LabelSpace, Mask
from peerseg.errors import PeersegError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".tif", ".tiff", ".webp", ".npy")
MASK_SUFFIXES = (".png", ".bmp", ".tif", ".tiff", ".npy")
LOSSY_SUFFIXES = (".jpg", ".jpeg", ".webp")
BITS_PER_SAMPLE = 258  # the TIFF tag
ORIENTATION = 0x0112  # the EXIF tag that phones set; 5 to 8 turn the picture by a quarter


def find_files(folder: Path, suffixes: tuple[str, ...]) -> dict[str, Path]:
    """Every file of some suffixes below a folder, at any depth.

    Args:
        folder: Where to look.
        suffixes: Lower-case endings.

    Returns:
        Path without suffix, relative to the folder -> file, sorted.
    """
    found: dict[str, Path] = {}
    for path in sorted(Path(base) / name for base, _, names in os.walk(folder, followlinks=True) for name in names):
        inner = path.relative_to(folder)
        # Hidden folders hold what programs put aside: copies, thumbnails, half-written files.
        if path.suffix.lower() not in suffixes or any(part.startswith(".") for part in inner.parts):
            continue
        stem = inner.with_suffix("").as_posix()
        if stem in found:
            raise PeersegError(
                f"{str(found[stem])!r} and {str(path)!r} have the same id {stem!r}: rename or remove one of them"
            )
        found[stem] = path
    return found


def read_image(path: Path) -> Image:
    """Read a picture as it is stored: no conversion, no loss.

    Args:
        path: An image file, or an .npy array of (H, W) or (H, W, channels).

    Returns:
        (H, W, channels) uint8, uint16 or float32.
    """
    with readable(path):
        array = _decode(path)
    image = array[:, :, None] if array.ndim == 2 else array
    if image.ndim != 3 or image.dtype not in (np.uint8, np.uint16, np.float32):
        raise PeersegError(
            f"{str(path)!r} holds {array.dtype} of shape {array.shape}, expected (height, width, channels) of uint8, uint16 "
            "or float32: convert it"
        )
    return image


def _decode(path: Path) -> npt.NDArray[Any]:
    if path.suffix.lower() == ".npy":
        return np.asarray(np.load(path, allow_pickle=False))
    if _is_deep_color_png(path):
        return _read_deep_png(path)
    try:
        with PIL.Image.open(path) as file:
            if file.format == "JPEG" and file.mode == "RGB" and file.getexif().get(ORIENTATION, 1) == 1:
                return _read_by_torchvision(path)  # the same bytes, a fifth faster
            if not _loses_bands(file):
                PIL.ImageOps.exif_transpose(file, in_place=True)
                return _plain_array(file)
    except (PIL.UnidentifiedImageError, ValueError):
        if path.suffix.lower() not in (".tif", ".tiff") or path.stat().st_size == 0:
            raise
    return _read_many_bands(path)


def _loses_bands(file: PIL.Image.Image) -> bool:
    # Pillow keeps only the high byte of 16-bit colors and the first page of a stack of bands.
    if not isinstance(file, PIL.TiffImagePlugin.TiffImageFile):
        return False
    deep = max(file.tag_v2.get(BITS_PER_SAMPLE, (1,))) == 16
    return file.n_frames > 1 or (deep and len(file.getbands()) > 1)


def _refuse_bomb(pixels: int) -> None:
    most = PIL.Image.MAX_IMAGE_PIXELS
    if most is not None and pixels > most:
        raise PIL.Image.DecompressionBombError(f"{pixels} pixels")


def _plain_array(image: PIL.Image.Image) -> npt.NDArray[Any]:
    if image.mode in ("P", "PA", "1", "CMYK", "YCbCr", "LA"):
        return np.asarray(image.convert("L" if image.mode in ("1", "LA") else "RGB"))
    array = np.asarray(image)
    if image.mode.startswith("I") and array.min(initial=0) >= 0 and array.max(initial=0) < 2**16:
        return array.astype(np.uint16)
    return array


def _is_deep_color_png(path: Path) -> bool:
    # Pillow keeps only the high byte of a 16-bit color PNG.
    with path.open("rb") as file:
        head = file.read(26)
    return head[:4] == b"\x89PNG" and len(head) == 26 and head[24] == 16 and head[25] in (2, 6)


def _read_deep_png(path: Path) -> npt.NDArray[Any]:
    with path.open("rb") as file:
        width, height = struct.unpack(">II", file.read(24)[16:])
    _refuse_bomb(width * height)
    return _read_by_torchvision(path)


def _read_by_torchvision(path: Path) -> npt.NDArray[Any]:
    from torchvision.io import ImageReadMode, decode_image, read_file

    try:
        with warnings.catch_warnings():
            # torchvision 0.29 announces the move of its decoders to torchcodec, which is no dependency of ours.
            warnings.simplefilter("ignore", DeprecationWarning)
            return np.asarray(decode_image(read_file(str(path)), ImageReadMode.UNCHANGED).permute(1, 2, 0).numpy())
    except RuntimeError as error:
        raise OSError(str(error)) from error


def _read_many_bands(path: Path) -> npt.NDArray[Any]:
    try:
        import tifffile
    except ImportError as error:
        raise PeersegError(f"{str(path)!r} has bands that need one more package: pip install tifffile") from error
    with tifffile.TiffFile(path) as file:
        height, width = sorted(file.series[0].shape)[-2:]  # bands are fewer than rows and columns
        _refuse_bomb(height * width)
        array = np.asarray(file.asarray(series=0))
    return np.moveaxis(array, 0, -1) if array.ndim == 3 and array.shape[0] < min(array.shape[1:]) else array


def image_size(path: Path) -> tuple[int, int]:
    """The height and width of a picture, from its header where that is enough.

    Args:
        path: An image file.

    Returns:
        (H, W), upright.
    """
    if path.suffix.lower() in (".npy", ".tif", ".tiff"):
        height, width = read_image(path).shape[:2]
        return height, width
    with readable(path), PIL.Image.open(path) as file:
        width, height = file.size
        turned = file.getexif().get(ORIENTATION, 1) >= 5
    return (width, height) if turned else (height, width)


def read_stored_mask(path: Path) -> npt.NDArray[Any]:
    """Read a mask as it is stored: palette indices, gray values or colors.

    Args:
        path: A mask file.

    Returns:
        (H, W) integers, or (H, W, 3) uint8 where the file is in color.
    """
    with readable(path):
        if path.suffix.lower() == ".npy":
            return _as_mask(np.asarray(np.load(path, allow_pickle=False)), path)
        with PIL.Image.open(path) as file:
            if file.mode in ("RGBA", "CMYK", "LA", "PA"):
                return np.asarray(file.convert("L" if file.mode == "LA" else "RGB"))
            array = np.asarray(file)
    return array.astype(np.uint8) if array.dtype == bool else array


def _as_mask(array: npt.NDArray[Any], path: Path) -> npt.NDArray[Any]:
    plane = array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array
    if plane.ndim != 2 and not (plane.ndim == 3 and plane.shape[2] == 3):
        raise PeersegError(
            f"{str(path)!r} has the shape {array.shape}, expected (height, width), or 3 colors behind: convert it"
        )
    return plane


def mask_palette(path: Path) -> list[tuple[int, int, int]] | None:
    """The color table of a palette mask.

    Args:
        path: A mask file.

    Returns:
        The colors by index, or None where the file has no palette.
    """
    if path.suffix.lower() == ".npy":
        return None
    with readable(path), PIL.Image.open(path) as file:
        flat = file.getpalette() if file.mode == "P" else None
    return [(flat[k], flat[k + 1], flat[k + 2]) for k in range(0, len(flat), 3)] if flat else None


def write_mask(path: Path, labels: Mask, space: LabelSpace) -> None:
    """Write a label map as a palette PNG: the values are class indices, and viewers show colors.

    Args:
        path: The file to write.
        labels: (H, W) class indices.
        space: Whose colors.
    """
    image = PIL.Image.fromarray(labels)
    image.putpalette(space.palette())
    image.save(path)


# What decoders raise on files that are cut short or damaged.
BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    TypeError,
    KeyError,
    IndexError,
    MemoryError,
    struct.error,
    zlib.error,
)


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turn whatever a decoder says of a broken file into one sentence that names it.

    Args:
        path: The file being read.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PIL.Image.DecompressionBombWarning)
            yield
    except (PIL.Image.DecompressionBombWarning, PIL.Image.DecompressionBombError) as error:
        raise PeersegError(
            f"{str(path)!r} would unpack to more than {PIL.Image.MAX_IMAGE_PIXELS} pixels, expected at most that many: "
            "cut it into tiles, or remove it if you do not know it"
        ) from error
    except FileNotFoundError as error:
        raise PeersegError(
            f"{str(path)!r} does not exist, expected an image there: put it back, or leave it out"
        ) from error
    except BROKEN as error:
        raise PeersegError(
            f"{str(path)!r} cannot be read as an image ({error}): it is empty, cut short or of another format; "
            "replace or remove it"
        ) from error
