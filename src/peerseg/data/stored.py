"""Labels that a network wrote for unlabeled images: a picture of two bands, the label and how sure the network was."""

from pathlib import Path

import numpy as np
import numpy.typing as npt
import PIL.Image

from peerseg.data.files import readable
from peerseg.data.labels import Mask
from peerseg.errors import PeersegError

SURE = 255  # what a confidence of 1 is stored as


def write_stored(folder: Path, id: str, labels: Mask, confidence: npt.NDArray[np.uint8]) -> None:
    """Write the labels of one image.

    Args:
        folder: Of all of them.
        id: Of the image.
        labels: (H, W); 255 where there is none.
        confidence: (H, W), in 255ths.
    """
    path = folder / f"{id}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(np.stack([labels, confidence], axis=2)).save(path)


def read_stored(folder: Path, id: str) -> tuple[Mask, npt.NDArray[np.uint8]]:
    """Read what ``write_stored`` wrote.

    Args:
        folder: Of all labels.
        id: Of the image.

    Returns:
        Labels (H, W), and the confidence (H, W) in 255ths.
    """
    path = folder / f"{id}.png"
    with readable(path), PIL.Image.open(path) as file:
        both = np.asarray(file)
    if both.ndim != 3 or both.shape[2] != 2:
        raise PeersegError(
            f"{str(path)!r} has the shape {both.shape}, expected (height, width, 2): label and confidence"
        )
    return np.ascontiguousarray(both[..., 0]), np.ascontiguousarray(both[..., 1])
