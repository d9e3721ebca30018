"""Pictures for people: any image as RGB, labels laid over it, and PNG bytes that fit into a page."""

import base64
import io
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

from peerseg.data.dataset import Image

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


def data_uri(picture: npt.NDArray[Any], smallest: int = 128) -> str:
    """A picture as a PNG inside a page.

    Args:
        picture: (H, W, 3) or (H, W) uint8.
        smallest: Pictures with a shorter side are enlarged by whole factors.

    Returns:
        A ``data:`` address.
    """
    factor = max(1, smallest // min(picture.shape[:2]))
    enlarged = picture.repeat(factor, axis=0).repeat(factor, axis=1)
    buffer = io.BytesIO()
    PIL.Image.fromarray(enlarged).save(buffer, "PNG", optimize=True)
    return f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
