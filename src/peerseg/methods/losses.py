"""The one loss of n-CPS, as a pure function: cross-entropy to hard labels, the peers' or a human's."""

import torch
from torch import Tensor

from peerseg.data.labels import UNLABELED


def cross_supervision(logits: Tensor, labels: Tensor, counted: Tensor) -> Tensor:
    """The inner sums of equations (2) and (3): ``1/K sum_k l(p, y_k) = -1/K sum_c V_c log p_c``, V the vote counts.

    The mean over the counted pixels of each image, then over the images; an image without counted pixels adds 0.

    Args:
        logits: (B, C, H, W) of the network that learns.
        labels: (K, B, H, W) uint8 of its K peers; a value that is no class casts no vote.
        counted: (B, H, W) bool, the pixels of the mean.

    Returns:
        A scalar.
    """
    votes = count_votes(labels, counted, like=logits)
    per_image = -(votes * torch.log_softmax(logits, dim=1)).sum(dim=(1, 2, 3)) / len(labels)
    return (per_image / counted.sum(dim=(1, 2)).clamp(min=1)).mean()


@torch.no_grad()
def count_votes(labels: Tensor, counted: Tensor, like: Tensor) -> Tensor:
    """How many peers chose each class.

    Args:
        labels: (K, B, H, W) uint8.
        counted: (B, H, W) bool; other pixels have no votes.
        like: (B, C, H, W), whose shape and type the result has.

    Returns:
        (B, C, H, W).
    """
    votes = torch.zeros_like(like)
    for answer in labels:
        voted = (answer < like.shape[1]) & counted
        index = torch.where(voted, answer, 0).long()
        votes.scatter_add_(1, index[:, None], voted[:, None].to(votes.dtype))
    return votes


def supervision(logits: Tensor, masks: Tensor) -> Tensor:
    """Equation (1) for one network: the human is the only peer, and counts where there is a class.

    Args:
        logits: (B, C, H, W).
        masks: (B, H, W) uint8; 254 and 255 are not counted.

    Returns:
        A scalar.
    """
    return cross_supervision(logits, masks[None], masks < UNLABELED)


def hard_labels(logits: Tensor, threshold: float = 0.0) -> Tensor:
    """``pmax``: what a network answers, as one byte a pixel. No gradient passes.

    Args:
        logits: (B, C, H, W).
        threshold: Pixels whose probability is not above it cast no vote (255).

    Returns:
        (B, H, W) uint8.
    """
    labels = logits.detach().argmax(dim=1).to(torch.uint8)
    if threshold <= 0:
        return labels
    sure = torch.softmax(logits.detach(), dim=1).amax(dim=1) > threshold
    return torch.where(sure, labels, 255)
