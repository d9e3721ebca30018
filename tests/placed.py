"""A network without weights that answers by pixel and place: for tests of how images are shown."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from peerseg.networks.base import SegmentationNetwork

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


class Placed(SegmentationNetwork):
    """A network whose logits depend on the pixel and on its place in what is shown; it notes every input."""

    def __init__(self, tilt: float = 0.0, gain: float = 1.0) -> None:
        super().__init__(8, MEAN, STD)
        self.tilt, self.gain = tilt, gain
        self.shown: list[Tensor] = []
        self.modes: list[bool] = []

    def encode(self, x: Tensor) -> list[Tensor]:
        self.shown.append(x)
        self.modes.append(self.training)
        return [x]

    def decode(self, features: list[Tensor]) -> Tensor:
        return features[0]

    def classify(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        rows = torch.arange(size[0], dtype=feature.dtype)[:, None]
        columns = torch.arange(size[1], dtype=feature.dtype)[None]
        return self.gain * feature + self.tilt * torch.stack(
            [rows + 0 * columns, columns + 0 * rows, 0 * rows * columns]
        )


def picture(size: tuple[int, int], seed: int = 0) -> npt.NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def normalized(image: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """(C, H, W) as a network is shown it."""
    return ((image / 255.0 - np.array(MEAN)) / np.array(STD)).transpose(2, 0, 1)


def softmax(logits: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    raised = np.exp(logits - logits.max(axis=0))
    return np.asarray(raised / raised.sum(axis=0))
