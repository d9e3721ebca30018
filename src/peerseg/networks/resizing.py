"""Bilinear resizing, with a gradient that can be the same in every run on any device."""

import torch
import torch.nn.functional as F
from torch import Tensor


def resize(feature: Tensor, size: tuple[int, int], *, align_corners: bool = False) -> Tensor:
    """Resize a map of features or logits.

    Args:
        feature: (B, C, h, w).
        size: (H, W) of the result.
        align_corners: Whether corners lie on corners, rather than borders on borders.

    Returns:
        (B, C, H, W).
    """
    if (feature.shape[2], feature.shape[3]) == size:
        return feature
    if not torch.are_deterministic_algorithms_enabled():
        return F.interpolate(feature, size=size, mode="bilinear", align_corners=align_corners)
    # An accelerator's own kernel adds up gradients in an order that changes. Two products of matrices do not, and cost less
    # than what torch puts in its place. In 32 bits, which autocast would halve.
    with torch.autocast(feature.device.type, enabled=False):
        wide = feature.to(torch.promote_types(feature.dtype, torch.float32))
        rows = bilinear_weights(feature.shape[2], size[0], align_corners, like=wide)
        columns = bilinear_weights(feature.shape[3], size[1], align_corners, like=wide)
        return (rows @ wide @ columns.T).to(feature.dtype)


def bilinear_weights(before: int, after: int, align_corners: bool, like: Tensor) -> Tensor:
    """Bilinear resizing of one axis as a matrix: hats around the places that are looked at.

    Args:
        before: Length of the axis.
        after: Length of the result.
        align_corners: As for ``resize``.
        like: Whose type and device the result has.

    Returns:
        (after, before), each row adding up to 1.
    """
    places = torch.arange(after, dtype=like.dtype, device=like.device)
    if align_corners:
        places = places * ((before - 1) / max(after - 1, 1))
    else:
        places = ((places + 0.5) * (before / after) - 0.5).clamp(0, before - 1)
    distances = places[:, None] - torch.arange(before, device=like.device)
    return (1 - distances.abs()).clamp(min=0)
