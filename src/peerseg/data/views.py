"""Views of an image: one random scale, crop and flip for image and mask together, padded to the crop's size.

Only the part of the image that the crop shows is ever resized, with the phase it has in the whole resized image.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

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


def view_image(image: Image, geometry: Geometry) -> Image:
    """The part of an image that a view shows, without padding.

    Args:
        image: (H, W, channels).
        geometry: Where the view lies.

    Returns:
        (h, w, channels) of the image's type, or float32 for images that are not uint8.
    """
    planes = image if image.dtype == np.uint8 else image.astype(np.float32)
    shown = [_resize(planes[..., k], geometry, PIL.Image.Resampling.BILINEAR) for k in range(image.shape[2])]
    stacked = np.stack(shown, axis=-1)
    return stacked[:, ::-1] if geometry.flip else stacked


def view_mask(mask: Mask, geometry: Geometry) -> Mask:
    """The same part of a mask, by the nearest pixel.

    Args:
        mask: (H, W).
        geometry: Where the view lies.

    Returns:
        (h, w), without padding.
    """
    shown = _resize(mask, geometry, PIL.Image.Resampling.NEAREST)
    return shown[:, ::-1] if geometry.flip else shown


def _resize(plane: npt.NDArray[Any], geometry: Geometry, how: PIL.Image.Resampling) -> npt.NDArray[Any]:
    height, width = plane.shape
    down, across = height / geometry.scaled[0], width / geometry.scaled[1]
    top, left = geometry.top * down, geometry.left * across
    # The last box edge is clipped because its product may exceed the image by a rounding.
    bottom = min((geometry.top + geometry.shown[0]) * down, height)
    right = min((geometry.left + geometry.shown[1]) * across, width)
    picture = PIL.Image.fromarray(np.ascontiguousarray(plane))
    return np.asarray(picture.resize((geometry.shown[1], geometry.shown[0]), how, box=(left, top, right, bottom)))


def pad(plane: npt.NDArray[Any], geometry: Geometry, value: float) -> npt.NDArray[Any]:
    """Pad the last two axes to the crop's size, half on either side.

    Args:
        plane: (..., h, w).
        geometry: Whose crop.
        value: What the padding holds.

    Returns:
        (..., H, W).
    """
    missing = [whole - part for whole, part in zip(geometry.crop, geometry.shown, strict=True)]
    edges = [(0, 0)] * (plane.ndim - 2) + [(lack // 2, lack - lack // 2) for lack in missing]
    return np.pad(plane, edges, constant_values=value)


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


def normalize(image: Floats, mean: Sequence[float], std: Sequence[float]) -> Floats:
    """Standardize each channel and put the channels first. The mean color becomes 0, which is what padding holds.

    Args:
        image: (H, W, channels) in unit range.
        mean: One value a channel.
        std: One value a channel.

    Returns:
        (channels, H, W) float32.
    """
    standard = (image - np.asarray(mean, np.float32)) / np.asarray(std, np.float32)
    return np.ascontiguousarray(standard.transpose(2, 0, 1))
