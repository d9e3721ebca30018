"""Labels that a network wrote for unlabeled images, with how sure it was: one picture an image, and facts about them all.

A picture has three bands: the label, and the high and the low byte of the surety, which is ``-log(1 - confidence)``: networks
are surer than any even scale can tell apart.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import PIL.Image

from peerseg.data.files import readable
from peerseg.data.labels import IGNORE, Mask
from peerseg.data.views import Floats
from peerseg.errors import PeersegError
from peerseg.runs import write_text

FACTS = "finished.json"
LEVELS = 2**16
STEPS = 4096  # of surety a unit: the surest that 32 bits tell from certainty is at 16 units


def surety_of(confidence: Floats) -> npt.NDArray[np.uint16]:
    """Confidence on the scale it is stored in.

    Args:
        confidence: (H, W), probabilities.

    Returns:
        (H, W).
    """
    surety = -STEPS * np.log(np.maximum(1 - confidence.astype(np.float64), 1e-300))
    levels: npt.NDArray[np.uint16] = np.minimum(np.floor(surety), LEVELS - 1).astype(np.uint16)
    return levels


def write_stored(folder: Path, id: str, labels: Mask, surety: npt.NDArray[np.uint16]) -> None:
    """Write the labels of one image, whole or not at all.

    Args:
        folder: Of all of them.
        id: Of the image.
        labels: (H, W).
        surety: (H, W).
    """
    path = folder / f"{id}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}")
    PIL.Image.fromarray(np.stack([labels, (surety >> 8), (surety & 255)], axis=2).astype(np.uint8)).save(part, "PNG")
    part.rename(path)


def read_stored(folder: Path, id: str) -> tuple[Mask, npt.NDArray[np.uint16]]:
    """Read what ``write_stored`` wrote.

    Args:
        folder: Of all labels.
        id: Of the image.

    Returns:
        Labels (H, W), and surety (H, W).
    """
    path = folder / f"{id}.png"
    with readable(path), PIL.Image.open(path) as file:
        bands = np.asarray(file)
    if bands.ndim != 3 or bands.shape[2] != 3:
        raise PeersegError(
            f"{str(path)!r} has the shape {bands.shape}, expected (height, width, 3): a label, and how sure it is"
        )
    return np.ascontiguousarray(bands[..., 0]), bands[..., 1].astype(np.uint16) * 256 + bands[..., 2]


def write_facts(folder: Path, limits: Sequence[int], facts: dict[str, Any]) -> None:
    """Write that all labels are there, and from which surety on they count.

    Args:
        folder: Of the labels.
        limits: One a class.
        facts: What else is to be known of them.
    """
    write_text(folder / FACTS, json.dumps({**facts, "limits": list(limits)}) + "\n")


def read_facts(folder: Path) -> dict[str, Any] | None:
    """What ``write_facts`` wrote.

    Args:
        folder: Of the labels.

    Returns:
        The facts; None where the labels are not all there.
    """
    path = folder / FACTS
    facts: dict[str, Any] | None = json.loads(path.read_text(encoding="utf8")) if path.exists() else None
    return facts


class StoredLabels:
    """The labels of a folder, those that count.

    Args:
        folder: That ``write_facts`` finished.
    """

    def __init__(self, folder: Path) -> None:
        facts = read_facts(folder)
        if facts is None:
            raise PeersegError(f"{str(folder)!r} holds no finished labels: give a folder that a run of dmt wrote")
        self._folder, self._limits = folder, np.asarray(facts["limits"])

    def read(self, id: str) -> tuple[Mask, Floats]:
        """The labels of one image.

        Args:
            id: Of the image.

        Returns:
            Labels (H, W), 255 where they are not sure enough; and the confidence (H, W).
        """
        labels, surety = read_stored(self._folder, id)
        confidence = -np.expm1(-surety.astype(np.float64) / STEPS)
        return np.where(surety >= self._limits[labels], labels, IGNORE).astype(np.uint8), confidence.astype(np.float32)
