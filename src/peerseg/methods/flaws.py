"""GCT's flaw detector: a network that sees an image and an answer, and says where the answer is wrong."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from peerseg.networks.resizing import resize

WIDTHS = (64, 128, 128, 256, 256, 512, 512)
STRIDES = (2, 2, 1, 2, 1, 2, 1)
SMALLEST = 32  # side of a view that leaves more than one place for the instance normalization
FAINT = 0.1  # the greatest flaw of an image below this is none


class FlawDetector(nn.Module):
    """Eight convolutions of 4 x 4.

    Args:
        channels: Of an image and the classes of an answer together.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width, stride in zip(WIDTHS, STRIDES, strict=True):
            layers += [_convolution(channels, width, stride), HalfNorm(width), nn.LeakyReLU(0.2)]
            channels = width
        self.layers = nn.Sequential(*layers, _convolution(channels, 1, 1))

    def forward(self, images: Tensor, answer: Tensor) -> Tensor:
        """How wrong an answer seems.

        Args:
            images: (B, channels, H, W) normalized.
            answer: (B, C, H, W) probabilities.

        Returns:
            (B, H, W); 0 is right, 1 is wrong, and nothing holds it between.
        """
        seen = self.layers(torch.cat([images, answer.to(images)], dim=1))
        return resize(seen.to(answer), (images.shape[2], images.shape[3]))[:, 0]


def _convolution(before: int, after: int, stride: int) -> nn.Module:
    # Padded so that stride 1 keeps the size, which an even kernel cannot do evenly.
    around = (1, 1, 1, 1) if stride == 2 else (1, 2, 1, 2)
    return nn.Sequential(nn.ZeroPad2d(around), nn.Conv2d(before, after, 4, stride))


class HalfNorm(nn.Module):
    """Batch normalization of one half of the channels, instance normalization of the other.

    Args:
        channels: An even number.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.batch, self.instance = nn.BatchNorm2d(channels // 2), nn.InstanceNorm2d(channels // 2)

    def forward(self, x: Tensor) -> Tensor:
        """Normalize.

        Args:
            x: (B, channels, h, w).

        Returns:
            The same shape.
        """
        first, second = x.chunk(2, dim=1)
        return torch.cat([self.batch(first), self.instance(second)], dim=1)


@torch.no_grad()
def settled(flaws: Tensor) -> Tensor:
    """What a detector's map is compared by: no less than 0, blurred, faint maps gone, each image's from 0 to 1.

    Args:
        flaws: (B, H, W).

    Returns:
        The same shape.
    """
    smooth = blurred(flaws.relu(), flaws.shape[1] // 16)
    return spread(torch.where(smooth.amax(dim=(1, 2), keepdim=True) > FAINT, smooth, 0.0))


@torch.no_grad()
def true_flaws(answer: Tensor, masks: Tensor, known: Tensor) -> Tensor:
    """Where an answer is wrong: half of the distance to the truth, blurred, grown, blurred, from 0 to 1.

    Args:
        answer: (B, C, H, W) probabilities.
        masks: (B, H, W) uint8.
        known: (B, H, W) bool, where the mask holds a class.

    Returns:
        (B, H, W).
    """
    truth = torch.zeros_like(answer).scatter_(1, torch.where(known, masks, 0).long()[:, None], 1.0)
    wrong = 0.5 * (truth - answer).abs().sum(dim=1) * known
    near = blurred(wrong, masks.shape[1] // 8)
    grown = F.max_pool2d(near[:, None], 3, stride=1, padding=1)[:, 0]
    return spread(blurred(grown, masks.shape[1] // 4))


def blurred(maps: Tensor, width: int) -> Tensor:
    """Gaussian blur, edges repeated.

    Args:
        maps: (B, H, W).
        width: Of the kernel; the next odd number is taken.

    Returns:
        The same shape.
    """
    width += 1 - width % 2
    sigma = 0.3 * ((width - 1) / 2 - 1) + 0.8  # what OpenCV takes for a kernel of this width
    places = torch.arange(width, device=maps.device, dtype=maps.dtype) - width // 2
    kernel = torch.softmax(-0.5 * (places / sigma) ** 2, dim=0)
    padded = F.pad(maps[:, None], (width // 2,) * 4, mode="replicate")
    with torch.autocast(maps.device.type, enabled=False):  # half as many bits would make flaws equal that are not
        return F.conv2d(F.conv2d(padded, kernel[None, None, None]), kernel[None, None, :, None])[:, 0]


def spread(maps: Tensor) -> Tensor:
    """Each map from 0 to 1; one without contrast becomes 0.

    Args:
        maps: (B, H, W).

    Returns:
        The same shape.
    """
    least, most = maps.amin(dim=(1, 2), keepdim=True), maps.amax(dim=(1, 2), keepdim=True)
    return (maps - least) / (most - least).clamp(min=1e-9)
