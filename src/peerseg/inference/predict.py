"""Prediction of one image: whole or by windows, flipped and scaled if asked for, every network and vote from one pass."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from peerseg.data.dataset import Image
from peerseg.data.labels import Mask
from peerseg.data.views import full_of, unit
from peerseg.errors import PeersegError
from peerseg.inference.voting import disagreement, scores
from peerseg.networks.base import SegmentationNetwork

Members = Sequence[SegmentationNetwork] | Mapping[str, SegmentationNetwork]


@dataclass(frozen=True)
class Protocol:
    """How an image is shown to the networks.

    Args:
        window: Side of the square windows in pixels, or None for the whole image at once.
        overlap: Share of a window that the next one shows again.
        flip: Show the mirrored image too, and average.
        scales: Show the image at these sizes, and average.
    """

    window: int | None = None
    overlap: float = 1 / 3
    flip: bool = False
    scales: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise PeersegError(
                f"evaluation.window is {self.window!r}, expected a number of pixels, or null for whole images"
            )
        if not 0 <= self.overlap < 1:
            raise PeersegError(f"evaluation.overlap is {self.overlap!r}, expected at least 0 and below 1")
        if not self.scales or min(self.scales) <= 0:
            raise PeersegError(f"evaluation.scales is {list(self.scales)!r}, expected positive sizes such as [1.0]")


WHOLE = Protocol()


@dataclass(frozen=True)
class Prediction:
    """What the networks say of one image.

    Args:
        labels: (H, W) uint8, the class that the vote chose.
        confidence: (H, W) float32, the networks' mean probability of that class.
        disagreement: (H, W) bool, where the networks do not all give the same label.
        probabilities: (n, C, H, W) float32, each network's own.
    """

    labels: Mask
    confidence: npt.NDArray[np.float32]
    disagreement: npt.NDArray[np.bool_]
    probabilities: npt.NDArray[np.float32]


def predict(members: Members, image: Image, *, vote: str = "sv", protocol: Protocol = WHOLE) -> Prediction:
    """Label one image.

    Args:
        members: The networks.
        image: (H, W, channels) as read: uint8, uint16 or float32.
        vote: Which answer; see ``peerseg.inference.vote``.
        protocol: How the image is shown.

    Returns:
        Labels, confidence, disagreement and each network's probabilities.
    """
    names, networks = split_members(members)
    probabilities = all_probabilities(networks, image, protocol)[:, None]
    score = scores(probabilities, vote, names)
    labels = score.argmax(dim=1)
    confidence = probabilities.mean(dim=0).gather(1, labels[:, None])[0, 0]
    return Prediction(
        labels[0].to(torch.uint8).cpu().numpy(),
        confidence.cpu().numpy(),
        disagreement(probabilities)[0].cpu().numpy(),
        probabilities[:, 0].cpu().numpy(),
    )


def split_members(members: Members) -> tuple[list[str], list[SegmentationNetwork]]:
    """Members as names, if they have any, and networks.

    Args:
        members: The networks, by name or in order.

    Returns:
        The names and the networks.
    """
    return (list(members), list(members.values())) if isinstance(members, Mapping) else ([], list(members))


@torch.no_grad()
def all_probabilities(members: Sequence[SegmentationNetwork], image: Image, protocol: Protocol = WHOLE) -> Tensor:
    """Each network's probabilities for one image, averaged over windows, flips and scales.

    Args:
        members: The networks; they are in evaluation mode during the call.
        image: (H, W, channels) as read.
        protocol: How the image is shown.

    Returns:
        (n, C, H, W) at the image's own size.
    """
    if image.ndim != 3 or image.shape[2] != len(members[0].mean):
        raise PeersegError(
            f"the image has the shape {image.shape}, expected (height, width, {len(members[0].mean)}) as in training: convert it"
        )
    picture = torch.from_numpy(unit(image, full_of(image))).permute(2, 0, 1)[None]
    return torch.stack([_probabilities(member, picture, protocol) for member in members])


def _probabilities(member: SegmentationNetwork, picture: Tensor, protocol: Protocol) -> Tensor:
    before = member.training
    member.eval()
    x = (picture.to(member.mean.device) - member.mean[:, None, None]) / member.std[:, None, None]
    size = (x.shape[2], x.shape[3])
    views = [_windows(member, view, protocol) for view in _views(x, protocol)]
    resized = [F.interpolate(view, size=size, mode="bilinear", align_corners=False) for view in views]
    # _views gives every scale plain, then mirrored.
    upright = [view.flip(3) if protocol.flip and k % 2 else view for k, view in enumerate(resized)]
    member.train(before)
    return torch.stack(upright).mean(dim=0)[0]


def _views(x: Tensor, protocol: Protocol) -> Iterator[Tensor]:
    for scale in protocol.scales:
        size = [max(1, round(side * scale)) for side in x.shape[2:]]
        scaled = (
            x if scale == 1 else F.interpolate(x, size=size, mode="bilinear", align_corners=False, antialias=scale < 1)
        )
        yield scaled
        if protocol.flip:
            yield scaled.flip(3)


def _windows(member: SegmentationNetwork, x: Tensor, protocol: Protocol) -> Tensor:
    """(1, C, H, W) probabilities of one view, its windows averaged where they overlap."""
    height, width = x.shape[2:]
    if protocol.window is None or max(height, width) <= protocol.window:
        return _padded(member, x)
    total, covered = None, x.new_zeros(height, width)
    for top in window_starts(height, protocol.window, protocol.overlap):
        for left in window_starts(width, protocol.window, protocol.overlap):
            place = (..., slice(top, top + protocol.window), slice(left, left + protocol.window))
            part = _padded(member, x[place])
            total = part.new_zeros(1, part.shape[1], height, width) if total is None else total
            total[place] += part
            covered[place] += 1
    assert total is not None, "there is at least one window"
    return total / covered


def window_starts(length: int, window: int, overlap: float) -> list[int]:
    """Where windows begin along one side; the last one is moved back inside.

    Args:
        length: Of the side.
        window: Of a window.
        overlap: Share of a window that the next one shows again.

    Returns:
        The starts, rising.
    """
    stride = math.ceil(window * (1 - overlap) - 1e-9)
    count = max(math.ceil((length - window) / stride), 0) + 1
    return [max(0, min(k * stride, length - window)) for k in range(count)]


def _padded(member: SegmentationNetwork, x: Tensor) -> Tensor:
    """Probabilities of one window, padded with the mean color to what the network's stride asks for."""
    height, width = x.shape[2:]
    missing = [-side % member.stride for side in (width, height)]
    padded = F.pad(x, (0, missing[0], 0, missing[1]))
    return torch.softmax(member(padded), dim=1)[..., :height, :width]
