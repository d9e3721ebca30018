"""Scores at native resolution: one confusion matrix a vote, all from one pass over every image."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from peerseg.data.dataset import SegmentationDataset
from peerseg.data.labels import UNLABELED, Mask
from peerseg.errors import PeersegError, named
from peerseg.inference.predict import Members, gather, split_members
from peerseg.inference.protocol import WHOLE, Protocol
from peerseg.inference.voting import answer, disagreement

Matrix = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Scores:
    """How well every vote does.

    Args:
        matrices: Vote -> (C, C) pixel counts, truth in rows.
        names: Class names.
        disagreement: Percent of the pixels on which the networks disagree; None for a single network.
        images: How many images were scored.
    """

    matrices: Mapping[str, Matrix]
    names: tuple[str, ...]
    disagreement: float | None
    images: int

    def iou(self, rule: str) -> dict[str, float | None]:
        """Percent of intersection over union of each class.

        Args:
            rule: A vote.

        Returns:
            Class name -> percent; None for a class in neither truth nor prediction.
        """
        return dict(zip(self.names, class_iou(self.matrices[rule]), strict=True))

    def miou(self, rule: str) -> float | None:
        """Mean of the classes that are defined, in percent.

        Args:
            rule: A vote.

        Returns:
            Percent; None where no class is defined.
        """
        defined = [value for value in class_iou(self.matrices[rule]) if value is not None]
        return sum(defined) / len(defined) if defined else None

    def as_dict(self) -> dict[str, Any]:
        """The scores as plain data, percent as in the paper."""
        return {
            "miou": {rule: self.miou(rule) for rule in self.matrices},
            "iou": {rule: self.iou(rule) for rule in self.matrices},
            "disagreement": self.disagreement,
            "images": self.images,
        }


def class_iou(matrix: Matrix) -> list[float | None]:
    """Intersection over union of each class.

    Args:
        matrix: (C, C) pixel counts, truth in rows.

    Returns:
        Percent a class; None for a class in neither truth nor prediction.
    """
    hit = np.diag(matrix)
    union = matrix.sum(axis=0) + matrix.sum(axis=1) - hit
    return [100 * int(h) / int(u) if u else None for h, u in zip(hit, union, strict=True)]


def confusion(truth: Mask, labels: Mask, classes: int) -> Matrix:
    """Count pixels by truth and prediction; pixels without a class are left out.

    Args:
        truth: (H, W), 254 and 255 where there is no class.
        labels: (H, W) class indices.
        classes: C.

    Returns:
        (C, C), truth in rows.
    """
    if truth.shape != labels.shape:
        raise PeersegError(
            f"a prediction of {labels.shape} was scored against a mask of {truth.shape}: expected the same size"
        )
    rows = np.where(truth < UNLABELED, truth, classes).astype(np.int64)
    counts = np.bincount((rows * classes + labels).ravel(), minlength=(classes + 1) * classes)
    return counts.reshape(classes + 1, classes)[:classes]


def evaluate(
    members: Members,
    votes: Sequence[str],
    dataset: SegmentationDataset,
    ids: Iterable[str],
    *,
    protocol: Protocol = WHOLE,
) -> Scores:
    """Score every vote on some images.

    Args:
        members: The networks.
        votes: Which answers; see ``peerseg.inference.vote``.
        dataset: Whose images and masks.
        ids: Which.
        protocol: How an image is shown.

    Returns:
        The scores.
    """
    names, networks = split_members(members)
    classes = len(dataset.label_space)
    matrices = {rule: np.zeros((classes, classes), np.int64) for rule in votes}
    differing = pixels = images = 0
    for id in ids:
        truth = dataset.mask(id)
        if truth is None:
            raise PeersegError(f"{dataset.file(id)!r} has no mask to score against: add it or leave the image out")
        with named(dataset.file(id)):
            evidence = gather(networks, dataset.image(id), protocol)
            for rule in votes:
                labels = answer(evidence, rule, names)[0]
                matrices[rule] += confusion(truth, labels.cpu().numpy(), classes)
        differing += int(disagreement(evidence).sum())
        pixels += truth.size
        images += 1
    if not images:
        raise PeersegError("no image was given to evaluate, expected at least one with a mask")
    share = 100 * differing / pixels if len(networks) > 1 else None
    return Scores(matrices, dataset.label_space.names, share, images)
