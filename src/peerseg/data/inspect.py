"""What must be known of the masks before training: every one is read once, checked and counted."""

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peerseg.data.classes import EXAMPLE
from peerseg.data.dataset import SegmentationDataset, Split
from peerseg.data.labels import IGNORE, UNLABELED
from peerseg.data.views import full_of, unit
from peerseg.errors import PeersegError

Counts = npt.NDArray[np.int64]
Watch = Callable[[Iterable[str], str], Iterable[str]]


@dataclass(frozen=True)
class Inspection:
    """What the masks hold.

    Args:
        pixels: For "labeled" and "val", (256,) how many pixels have each value.
        partly: Labeled ids whose masks hold unlabeled pixels.
        notes: What the user should know, a sentence each.
    """

    pixels: dict[str, Counts]
    partly: tuple[str, ...]
    notes: tuple[str, ...]

    def digest(self) -> str:
        """A short hash of the counts: other masks, or another meaning of their values, give another."""
        counts = b"".join(counts.tobytes() for counts in self.pixels.values())
        return hashlib.sha256(counts).hexdigest()[:16]


def inspect(dataset: SegmentationDataset, split: Split, watch: Watch | None = None) -> Inspection:
    """Read every labeled and val mask, refuse what cannot be learned from, and count the rest.

    Args:
        dataset: The data set.
        split: Its split; masks of unlabeled images are not touched.
        watch: Wraps the ids to show progress.

    Returns:
        The counts, the partly labeled ids and notes.
    """
    pixels: dict[str, Counts] = {}
    partly: list[str] = []
    for part, ids in (("labeled", split.labeled), ("val", split.val)):
        if not ids:
            raise PeersegError(f"the {part} list is empty, expected at least one image with a mask")
        pixels[part] = np.zeros(256, np.int64)
        for id in watch(ids, f"reading {part} masks") if watch else ids:
            counts = _count(dataset, id)
            pixels[part] += counts
            if part == "labeled" and counts[UNLABELED]:
                partly.append(id)
    _refuse_silent_ignore(pixels["labeled"])
    return Inspection(pixels, tuple(partly), tuple(_notes(dataset, pixels)))


def _count(dataset: SegmentationDataset, id: str) -> Counts:
    mask = dataset.mask(id)
    if mask is None:
        raise PeersegError(f"{dataset.file(id)!r} is listed with a mask but has none: add the mask or change the list")
    size = dataset.size(id)
    if mask.shape != size:
        raise PeersegError(
            f"{dataset.file(id)!r} is {size[0]} x {size[1]} pixels but its mask is {mask.shape[0]} x {mask.shape[1]}: "
            "expected the same size, save one of them anew"
        )
    return np.bincount(mask.ravel(), minlength=256)


def _refuse_silent_ignore(pixels: Counts) -> None:
    classes = np.flatnonzero(pixels[:UNLABELED])
    if len(classes) == 0:
        raise PeersegError("the labeled masks hold no class at all, only ignore or unlabeled pixels: label some pixels")
    if len(classes) == 1 and pixels[IGNORE] and not pixels[UNLABELED]:
        raise PeersegError(
            f"the labeled masks hold only the values {classes[0]} and 255, and 255 means ignore: if 255 is a class, "
            f"declare it in classes.yaml, such as `{EXAMPLE}`"
        )


def _notes(dataset: SegmentationDataset, pixels: dict[str, Counts]) -> list[str]:
    notes = []
    for part, counts in pixels.items():
        absent = [name for k, name in enumerate(dataset.label_space.names) if not counts[k]]
        if absent:
            shown = ", ".join(absent[:10]) + (f" and {len(absent) - 10} more" if len(absent) > 10 else "")
            harm = "cannot be learned" if part == "labeled" else "is left out of the mean"
            notes.append(f"no {part} mask holds {shown}: what no mask holds {harm}")
    return notes


def color_statistics(dataset: SegmentationDataset, ids: Iterable[str]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The mean and standard deviation of each channel over some images, for networks that bring none.

    Args:
        dataset: The data set.
        ids: The images to average over.

    Returns:
        Means and deviations in unit range, one a channel.
    """
    sums: list[npt.NDArray[np.float64]] = []
    for id in ids:
        image = dataset.image(id)
        flat = unit(image, full_of(image)).reshape(-1, image.shape[2]).astype(np.float64)
        if sums and sums[0].shape[1] != flat.shape[1]:
            raise PeersegError(
                f"{dataset.file(id)!r} has {flat.shape[1]} channels, the images before have {sums[0].shape[1]}"
            )
        sums.append(np.stack([flat.mean(axis=0), (flat**2).mean(axis=0)]))
    mean, square = np.mean(sums, axis=0)
    std = np.sqrt(np.maximum(square - mean**2, 1e-8))
    return tuple(float(value) for value in mean), tuple(float(value) for value in std)
