"""Evaluation as the paper's numbers were made, for comparison with them; our own shows images at their own size.

Images smaller than the window are padded to it, half on either side. A network alone is judged by logits, summed where
windows overlap; the votes of all by probabilities, fused in every window before they are summed.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from peerseg.inference.protocol import Protocol, windows
from peerseg.inference.voting import Evidence
from peerseg.networks.base import SegmentationNetwork


def published_evidence(members: Sequence[SegmentationNetwork], picture: Tensor, protocol: Protocol) -> Evidence:
    """What every network says of one image, as published.

    Args:
        members: The networks, in evaluation mode.
        picture: (1, channels, H, W) in unit range.
        protocol: With a window.

    Returns:
        Evidence at the image's own size.
    """
    assert protocol.window is not None, "checked by the protocol"
    window, (height, width) = protocol.window, picture.shape[2:]
    above, left = (max(window - side, 0) // 2 for side in (height, width))
    below, right = (max(window - side, 0) - before for side, before in ((height, above), (width, left)))
    # Reference: windows of larger images are padded with black there; here padding is always the mean color.
    shown = [F.pad(member.normalized(picture), (left, right, above, below)) for member in members]
    totals: list[Tensor] = []
    for place in windows(shown[0].shape[2], shown[0].shape[3], protocol):
        logits = torch.stack([member(x[place]) for member, x in zip(members, shown, strict=True)])
        softmax = torch.softmax(logits, dim=2)
        found = (logits, softmax, softmax.amax(dim=0), torch.ones_like(logits[0, :, :1]))
        totals = totals or [part.new_zeros(*part.shape[:-2], *shown[0].shape[2:]) for part in found]
        for total, part in zip(totals, found, strict=True):
            total[place] += part
    inner = (..., slice(above, above + height), slice(left, left + width))
    own, probabilities, most, covered = (total[inner] for total in totals)
    return Evidence(probabilities / covered, own, most)
