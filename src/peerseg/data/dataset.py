"""What every data set offers: images and masks by id, and a split; and the view of it that has no masks at all."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from peerseg.data.labels import LabelSpace, Mask

Image = npt.NDArray[Any]


@dataclass(frozen=True)
class Split:
    """Which ids are learned from with their masks, which without, and which judge.

    Args:
        labeled: Ids whose masks are learned from.
        unlabeled: Ids whose masks, if there are any, are never read.
        val: Ids that choose and report.
    """

    labeled: Sequence[str]
    unlabeled: Sequence[str]
    val: Sequence[str]


class SegmentationDataset(ABC):
    """Images with masks, by id.

    Attributes:
        label_space: The classes.
        ids: Every id, in a fixed order.
        notes: What the data set decided by itself; said before training.
    """

    label_space: LabelSpace
    ids: Sequence[str]
    notes: Sequence[str] = ()

    @abstractmethod
    def image(self, id: str) -> Image:
        """Read one image.

        Args:
            id: One of ``ids``.

        Returns:
            (H, W, channels) uint8, uint16 or float32.
        """

    @abstractmethod
    def mask(self, id: str) -> Mask | None:
        """Read one mask.

        Args:
            id: One of ``ids``.

        Returns:
            (H, W) class indices, 254 (unlabeled) or 255 (ignore); None where no mask exists.
        """

    @abstractmethod
    def split(self) -> Split:
        """The split the data set was asked for."""

    def size(self, id: str) -> tuple[int, int]:
        """The size of one image; a data set that can tell it from a header overrides this.

        Args:
            id: One of ``ids``.

        Returns:
            (H, W).
        """
        height, width = self.image(id).shape[:2]
        return height, width

    def file(self, id: str) -> str:
        """What a message calls an image: its file, where there is one.

        Args:
            id: One of ``ids``.

        Returns:
            A path or the id.
        """
        return id


class UnlabeledImages:
    """The unlabeled stream's view of a data set: images by id, and no way to a mask.

    Args:
        dataset: Where the images lie.
        ids: The unlabeled ids.
    """

    def __init__(self, dataset: SegmentationDataset, ids: Sequence[str]) -> None:
        self.ids = ids
        self.image = dataset.image
        self.file = dataset.file
