"""Views of an image: one random scale, crop and flip for image and mask together, padded to the crop's size.

Only the part of the image that the crop shows is ever resized.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image
import torch
import torch.nn.functional as F

from peerseg.data.dataset import Image
from peerseg.data.labels import IGNORE, Mask

Floats = npt.NDArray[np.float32]
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Geometry:
    """Where a view lies.

    Args:
        scaled: (H, W) the whole image is resized to.
        top: First row of the crop in the resized image.
        left: First column.
        shown: (H, W) of the crop that lies inside the image.
        crop: (H, W) of the view; what ``shown`` lacks is padding, half on either side.
        flip: Whether left and right are exchanged.
    """

    scaled: tuple[int, int]
    top: int
    left: int
    shown: tuple[int, int]
    crop: tuple[int, int]
    flip: bool


def draw_geometry(
    random: np.random.Generator,
    size: tuple[int, int],
    crop: tuple[int, int],
    scales: Sequence[float],
    *,
    between: bool = False,
    flip: bool = True,
) -> Geometry:
    """Draw where a view lies.

    Args:
        random: Where the choices come from.
        size: (H, W) of the image.
        crop: (H, W) of the view.
        scales: The set one scale is drawn from.
        between: Draw anywhere between the smallest and the largest scale instead.
        flip: Whether half of the views are flipped.

    Returns:
        The geometry.
    """
    scale = random.uniform(min(scales), max(scales)) if between else scales[int(random.integers(len(scales)))]
    scaled = (max(1, int(size[0] * scale)), max(1, int(size[1] * scale)))
    shown = (min(scaled[0], crop[0]), min(scaled[1], crop[1]))
    # Reference: the last row and column are drawn too, one beyond which the authors' crop fell short by a pixel.
    top, left = (int(random.integers(whole - part + 1)) for whole, part in zip(scaled, shown, strict=True))
    return Geometry(scaled, top, left, shown, crop, flip and bool(random.integers(2)))


def view_image(image: Image, geometry: Geometry, *, published: bool = False) -> Image:
    """The part of an image that a view shows, without padding.

    Args:
        image: (H, W, channels).
        geometry: Where the view lies.
        published: As the authors did: by the four nearest pixels even where the image shrinks.

    Returns:
        (h, w, channels) of the image's type, or float32 for images that are not uint8.
    """
    if published:
        planes = image if image.dtype == np.uint8 else image.astype(np.float32)
        shown = np.stack([_interpolate(planes[..., k], geometry) for k in range(image.shape[2])], axis=-1)
    else:
        shown = _smooth(image[_box(geometry, image.shape[:2])], geometry.shown)
    return shown[:, ::-1] if geometry.flip else shown


def view_mask(mask: npt.NDArray[Any], geometry: Geometry, *, published: bool = False) -> npt.NDArray[Any]:
    """The same part of a mask, by the nearest pixel.

    Args:
        mask: (H, W), or any map that must not be averaged.
        geometry: Where the view lies.
        published: As the authors did: nearest to a pixel's corner, not to its center.

    Returns:
        (h, w), without padding.
    """
    shown = _corners(mask, geometry) if published else _nearest(mask[_box(geometry, mask.shape)], geometry.shown)
    return shown[:, ::-1] if geometry.flip else shown


def _box(geometry: Geometry, size: Sequence[int]) -> tuple[slice, slice]:
    """The whole pixels of an image that a view shows; half a pixel at a border may go to either side."""
    rows, columns = (
        slice(min(round(first * before / after), before - 1), max(round((first + count) * before / after), 1))
        for before, after, first, count in zip(
            size, geometry.scaled, (geometry.top, geometry.left), geometry.shown, strict=True
        )
    )
    return rows, columns


def _smooth(part: Image, size: tuple[int, int]) -> Image:
    """Bilinear resizing that averages where it shrinks."""
    picture = torch.from_numpy(np.array(part, np.uint8 if part.dtype == np.uint8 else np.float32))
    # Channels last as they lie: torch has a kernel for bytes that takes them so, several times as fast as Pillow's.
    resized = F.interpolate(picture.permute(2, 0, 1)[None], size=size, mode="bilinear", antialias=True)
    return np.asarray(resized[0].permute(1, 2, 0).numpy())


def _nearest(part: npt.NDArray[Any], size: tuple[int, int]) -> npt.NDArray[Any]:
    """The pixel around each center."""
    places = (
        (2 * np.arange(after) + 1) * before // (2 * after) for before, after in zip(part.shape, size, strict=True)
    )
    shown: npt.NDArray[Any] = part[np.ix_(*places)]
    return shown


def _near(start: float, stop: float, scale: float, length: int) -> slice:
    """All pixels of an axis that resizing a part of it looks at."""
    reach = int(max(scale, 1)) + 2
    return slice(max(int(start) - reach, 0), min(int(stop) + reach + 1, length))


def _interpolate(plane: npt.NDArray[Any], geometry: Geometry) -> npt.NDArray[Any]:
    """Between the four pixels around the center of each pixel of the view."""
    (height, width), (h, w) = plane.shape, geometry.shown
    down, across = height / geometry.scaled[0], width / geometry.scaled[1]
    top, left = geometry.top * down, geometry.left * across
    rows, columns = _near(top, top + h * down, down, height), _near(left, left + w * across, across, width)
    picture = PIL.Image.fromarray(np.ascontiguousarray(plane[rows, columns], np.float32))
    where = (across, 0, left - columns.start, 0, down, top - rows.start)
    shown = np.asarray(picture.transform((w, h), PIL.Image.Transform.AFFINE, where, PIL.Image.Resampling.BILINEAR))
    return np.rint(shown).astype(np.uint8) if plane.dtype == np.uint8 else shown


def _corners(mask: npt.NDArray[Any], geometry: Geometry) -> npt.NDArray[Any]:
    places = []
    for whole, scaled, first, count in zip(
        mask.shape, geometry.scaled, (geometry.top, geometry.left), geometry.shown, strict=True
    ):
        places.append(np.minimum(((first + np.arange(count)) * (whole / scaled)).astype(np.int64), whole - 1))
    shown: npt.NDArray[Any] = mask[np.ix_(*places)]
    return shown


def pad(plane: npt.NDArray[Any], geometry: Geometry, value: float) -> npt.NDArray[Any]:
    """Pad the last two axes to the crop's size, half on either side.

    Args:
        plane: (..., h, w).
        geometry: Whose crop.
        value: What the padding holds.

    Returns:
        (..., H, W).
    """
    padded = np.full((*plane.shape[:-2], *geometry.crop), value, plane.dtype)
    padded[(..., *_placed(geometry))] = plane
    return padded


def _placed(geometry: Geometry) -> tuple[slice, slice]:
    """Where in a view the image lies: in the middle."""
    starts = [(whole - part) // 2 for whole, part in zip(geometry.crop, geometry.shown, strict=True)]
    rows, columns = (slice(start, start + part) for start, part in zip(starts, geometry.shown, strict=True))
    return rows, columns


def inside(geometry: Geometry) -> Bools:
    """Where a view shows the image: (H, W), false on padding.

    Args:
        geometry: Of the view.

    Returns:
        The map.
    """
    return pad(np.ones(geometry.shown, bool), geometry, False)


def pad_mask(mask: Mask, geometry: Geometry) -> Mask:
    """Pad a mask with ``IGNORE``.

    Args:
        mask: (h, w).
        geometry: Of the view.

    Returns:
        (H, W).
    """
    return pad(mask, geometry, IGNORE)


def unit(image: Image, full: float) -> Floats:
    """An image in units in which white is 1; float images are in their own units already.

    Args:
        image: (H, W, channels), of any type.
        full: What white is: 255, 65535 or 1 (``full_of`` the stored image).

    Returns:
        The same shape in float32.
    """
    return image.astype(np.float32) / np.float32(full)


def full_of(image: Image) -> float:
    """The value of white in a stored image.

    Args:
        image: As read.

    Returns:
        255, 65535, or 1 for floats.
    """
    return float(np.iinfo(image.dtype).max) if np.issubdtype(image.dtype, np.integer) else 1.0


def standardize(image: Image, full: float, mean: Sequence[float], std: Sequence[float], geometry: Geometry) -> Floats:
    """What a network is shown: channels first, each standardized, padded with the mean color, which is 0.

    Args:
        image: (h, w, channels), of any type.
        full: What white is in it.
        mean: One value a channel, in units in which white is 1.
        std: One value a channel.
        geometry: Whose crop.

    Returns:
        (channels, H, W) float32.
    """
    made = (np.empty if geometry.shown == geometry.crop else np.zeros)((image.shape[2], *geometry.crop), np.float32)
    inner = made[(slice(None), *_placed(geometry))]
    for k in range(image.shape[2]):
        np.multiply(image[..., k], np.float32(1 / (full * std[k])), out=inner[k])
        inner[k] -= np.float32(mean[k] / std[k])
    return made
