"""A small network that learns from nothing in minutes on two CPU cores: for drawn scenes, tests and first steps."""

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from peerseg.errors import check_between
from peerseg.networks.base import SegmentationNetwork
from peerseg.networks.resizing import resize


class SmallNetwork(SegmentationNetwork):
    """Three resolutions down, two up, with skips.

    Args:
        classes: How many.
        channels: Of the images.
        width: Channels of the finest features; coarser ones have two and four times as many.
        dropout: Share of the decoded channels dropped in training.
        mean: Of each channel; 0.5 where None.
        std: Of each channel; 0.25 where None.
    """

    def __init__(
        self,
        classes: int,
        *,
        channels: int = 3,
        width: int = 24,
        dropout: float = 0.0,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
    ) -> None:
        check_between("network.width", width, 1)
        check_between("network.dropout", dropout, 0, 1)
        super().__init__(8, mean or (0.5,) * channels, std or (0.25,) * channels)
        widths = (width, 2 * width, 4 * width)
        self.stem = _block(channels, width, stride=2)
        self.down = nn.ModuleList(
            nn.Sequential(_block(narrow, wide, stride=2), _block(wide, wide)) for narrow, wide in pairwise(widths)
        )
        self.up = nn.ModuleList(
            _block(wide + narrow, narrow) for narrow, wide in zip(widths[-2::-1], widths[:0:-1], strict=True)
        )
        self.dropout = nn.Dropout2d(dropout)
        self.classifier = nn.Conv2d(width, classes, 1)

    def encode(self, x: Tensor) -> list[Tensor]:
        """Features at strides 2, 4 and 8; see ``SegmentationNetwork.encode``."""
        features: list[Tensor] = [self.stem(x)]
        for stage in self.down:
            features.append(stage(features[-1]))
        return features

    def decode(self, features: list[Tensor]) -> Tensor:
        """(B, width, H/2, W/2); see ``SegmentationNetwork.decode``."""
        *skips, feature = features
        for stage, skip in zip(self.up, reversed(skips), strict=True):
            larger = resize(feature, (skip.shape[2], skip.shape[3]))
            feature = stage(torch.cat([larger, skip], dim=1))
        return feature

    def classify(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        """(B, classes, H, W); see ``SegmentationNetwork.classify``."""
        return resize(self.classifier(self.dropout(feature)), size)


def _block(narrow: int, wide: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(narrow, wide, 3, stride=stride, padding=1, bias=False), nn.BatchNorm2d(wide), nn.ReLU(inplace=True)
    )
