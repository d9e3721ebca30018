"""Rows of pictures that show what an ensemble does: image, truth, each network, the vote, the disagreement."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import PIL.Image

from peerseg.data.dataset import SegmentationDataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.report.pictures import Picture, fitted, to_rgb

GAP = 4  # pixels of white between pictures


def panels(
    ensemble: Ensemble, dataset: SegmentationDataset, ids: Sequence[str]
) -> tuple[list[str], list[list[Picture]]]:
    """Let an ensemble answer some images.

    Args:
        ensemble: Who answers.
        dataset: Whose images.
        ids: Which.

    Returns:
        The names of the columns, and a row of (H, W, 3) pictures an image.
    """
    members = list(ensemble.predictors.members)
    names = ["image", "truth", *members] + ([ensemble.vote, "disagreement"] if len(members) > 1 else [])
    paint = dataset.label_space.paint
    rows = []
    for id in ids:
        image, truth = dataset.image(id), dataset.mask(id)
        found = ensemble.predict(image)
        row = [to_rgb(image), to_rgb(image) if truth is None else paint(truth)]
        row += [paint(own.argmax(axis=0).astype(np.uint8)) for own in found.probabilities]
        if len(members) > 1:
            differing = found.disagreement.astype(np.uint8) * np.uint8(255)
            row += [paint(found.labels), np.stack([differing] * 3, axis=-1)]
        rows.append(row)
    return names, rows


def write_sheet(path: Path, rows: Sequence[Sequence[Picture]]) -> None:
    """Write rows of pictures as one PNG.

    Args:
        path: The file.
        rows: (H, W, 3) pictures, those of a row of one size.
    """
    strips = [np.concatenate([_framed(picture) for picture in row], axis=1) for row in rows]
    width = max(strip.shape[1] for strip in strips)
    padded = [np.pad(strip, ((0, 0), (0, width - strip.shape[1]), (0, 0)), constant_values=255) for strip in strips]
    PIL.Image.fromarray(np.concatenate(padded)).save(path, "PNG", optimize=True)


def _framed(picture: Picture) -> Picture:
    return np.pad(fitted(picture), ((0, GAP), (0, GAP), (0, 0)), constant_values=255)
