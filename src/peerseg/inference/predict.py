"""Prediction of one image: whole or by windows, flipped and scaled if asked for, every network and vote from one pass."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from peerseg.inference.protocol import WHOLE, Protocol, windows
from peerseg.inference.published import published_evidence
from peerseg.inference.voting import Evidence, answer, disagreement
from peerseg.networks.base import SegmentationNetwork

Members = Sequence[SegmentationNetwork] | Mapping[str, SegmentationNetwork]


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
    evidence = gather(networks, image, protocol)
    labels = answer(evidence, vote, names)
    confidence = evidence.probabilities.mean(dim=0).gather(1, labels[:, None].long())[0, 0]
    return Prediction(
        labels[0].cpu().numpy(),
        confidence.cpu().numpy(),
        disagreement(evidence)[0].cpu().numpy(),
        evidence.probabilities[:, 0].cpu().numpy(),
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
def gather(members: Sequence[SegmentationNetwork], image: Image, protocol: Protocol = WHOLE) -> Evidence:
    """What every network says of one image, in one pass each over what it is shown.

    Args:
        members: The networks; they are in evaluation mode during the call.
        image: (H, W, channels) as read.
        protocol: How the image is shown.

    Returns:
        Probabilities averaged over windows, flips and scales, (n, 1, C, H, W), at the image's own size.
    """
    if image.ndim != 3 or image.shape[2] != len(members[0].mean):
        raise PeersegError(
            f"the image has the shape {image.shape}, expected (height, width, {len(members[0].mean)}) as in training: convert it"
        )
    if image.dtype not in (np.uint8, np.uint16, np.float32):
        raise PeersegError(f"the image holds {image.dtype} values, expected uint8, uint16 or float32: convert it")
    picture = torch.from_numpy(unit(image, full_of(image))).permute(2, 0, 1)[None]
    with evaluating(members):
        if protocol.published:
            return published_evidence(members, picture, protocol)
        return Evidence(torch.stack([_probabilities(member, picture, protocol) for member in members]))


@contextmanager
def evaluating(members: Sequence[SegmentationNetwork]) -> Iterator[None]:
    """Networks in evaluation mode, and afterwards in the mode they were in.

    Args:
        members: The networks.
    """
    before = [member.training for member in members]
    for member in members:
        member.eval()
    try:
        yield
    finally:
        for member, training in zip(members, before, strict=True):
            member.train(training)


def _probabilities(member: SegmentationNetwork, picture: Tensor, protocol: Protocol) -> Tensor:
    x = member.normalized(picture)
    size = (x.shape[2], x.shape[3])
    views = [_windows(member, view, protocol) for view in _views(x, protocol)]
    resized = [F.interpolate(view, size=size, mode="bilinear", align_corners=False) for view in views]
    # _views gives every scale plain, then mirrored.
    upright = [view.flip(3) if protocol.flip and k % 2 else view for k, view in enumerate(resized)]
    return torch.stack(upright).mean(dim=0)


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
    for place in windows(height, width, protocol):
        part = _padded(member, x[place])
        total = part.new_zeros(1, part.shape[1], height, width) if total is None else total
        total[place] += part
        covered[place] += 1
    assert total is not None, "there is at least one window"
    return total / covered


def _padded(member: SegmentationNetwork, x: Tensor) -> Tensor:
    """Probabilities of one window, padded with the mean color to what the network's stride asks for."""
    height, width = x.shape[2:]
    missing = [-side % member.stride for side in (width, height)]
    padded = F.pad(x, (0, missing[0], 0, missing[1]))
    return torch.softmax(member(padded), dim=1)[..., :height, :width]
