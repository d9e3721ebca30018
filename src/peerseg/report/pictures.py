"""Pictures for people: any image as RGB, labels laid over it, and PNG bytes that fit into a page."""

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

from peerseg.data.dataset import Image

SMALLEST, LARGEST = 128, 512  # pixels

Picture = npt.NDArray[np.uint8]


def to_rgb(image: Image) -> Picture:
    """Show an image of any channels and depth.

    Args:
        image: (H, W, channels) uint8, uint16 or float32.

    Returns:
        (H, W, 3) uint8: RGB as it is; one channel as gray; of more the first three; other types stretched.
    """
    shown = image[:, :, [0, 0, 0]] if image.shape[2] < 3 else image[:, :, :3]
    if shown.dtype == np.uint8:
        return np.asarray(shown, np.uint8)
    low, high = np.percentile(shown, (1, 99))
    stretched = (shown.astype(np.float64) - low) / max(float(high - low), 1e-9)
    return np.asarray(stretched.clip(0, 1) * 255, np.uint8)


def overlay(picture: Picture, colored: Picture) -> Picture:
    """Labels over the picture they belong to.

    Args:
        picture: (H, W, 3).
        colored: (H, W, 3), the painted labels.

    Returns:
        (H, W, 3), half of each.
    """
    return np.asarray((picture.astype(np.uint16) + colored) // 2, np.uint8)


def fitted(picture: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A picture at a size to look at: small ones enlarged by a whole factor, large ones thinned out.

    Args:
        picture: (H, W, 3) or (H, W) uint8.

    Returns:
        The same picture, its shorter side at least 128 pixels or its longer side at most 512.
    """
    factor = max(1, SMALLEST // min(picture.shape[:2]))
    step = -(-max(picture.shape[:2]) // LARGEST)
    return picture[::step, ::step].repeat(factor, axis=0).repeat(factor, axis=1)


def data_uri(picture: npt.NDArray[Any]) -> str:
    """A picture as a PNG inside a page.

    Args:
        picture: (H, W, 3) or (H, W) uint8.

    Returns:
        A ``data:`` address.
    """
    buffer = io.BytesIO()
    PIL.Image.fromarray(fitted(picture)).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
