"""What a method asks of a network: features, one feature to classify, logits; and the colors it was made for."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor, nn


class SegmentationNetwork(nn.Module, ABC):
    """A network for semantic segmentation.

    Args:
        stride: Images it is given have sides that are multiples of this; prediction pads to it.
        mean: The mean of each channel its inputs are normalized by, in unit range.
        std: The standard deviation of each channel.

    Attributes:
        mean: (C,), saved with the weights, so that a trained network brings its own normalization.
        std: (C,).
    """

    mean: Tensor
    std: Tensor

    def __init__(self, stride: int, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__()
        self.stride = stride
        self.register_buffer("mean", torch.tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.tensor(std, dtype=torch.float32))

    def normalized(self, picture: Tensor) -> Tensor:
        """An image as this network wants it.

        Args:
            picture: (B, C, H, W) in unit range, on any device.

        Returns:
            The same shape, beside the network; the mean color is 0.
        """
        return (picture.to(self.mean.device) - self.mean[:, None, None]) / self.std[:, None, None]

    @abstractmethod
    def encode(self, x: Tensor) -> list[Tensor]:
        """Features of several resolutions.

        Args:
            x: (B, C, H, W) normalized images.

        Returns:
            Feature maps, finest first.
        """

    @abstractmethod
    def decode(self, features: list[Tensor]) -> Tensor:
        """The one feature map the classifier reads.

        Args:
            features: From ``encode``.

        Returns:
            (B, D, h, w).
        """

    @abstractmethod
    def classify(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        """Logits at full resolution.

        Args:
            feature: From ``decode``.
            size: (H, W) of the result.

        Returns:
            (B, classes, H, W).
        """

    def forward(self, x: Tensor) -> Tensor:
        """Logits of images: ``classify(decode(encode(x)))``.

        Args:
            x: (B, C, H, W) normalized images.

        Returns:
            (B, classes, H, W).
        """
        return self.classify(self.decode(self.encode(x)), (x.shape[2], x.shape[3]))


@torch.no_grad()
def widths(network: SegmentationNetwork) -> tuple[int, int]:
    """The channels of the feature that is classified, and of the logits, found by a look at a blank image.

    Args:
        network: Left as it was.

    Returns:
        (D, classes).
    """
    training, side = network.training, 4 * network.stride
    network.eval()
    blank = torch.zeros(1, len(network.mean), side, side, dtype=network.mean.dtype, device=network.mean.device)
    feature = network.decode(network.encode(blank))
    classes = network.classify(feature, (side, side)).shape[1]
    network.train(training)
    return feature.shape[1], classes
