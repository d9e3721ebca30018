"""The one loss of n-CPS, as a pure function: cross-entropy to hard labels, the peers' or a human's."""

import torch
from torch import Tensor

from peerseg.data.labels import UNLABELED


def cross_supervision(logits: Tensor, labels: Tensor, counted: Tensor) -> Tensor:
    """The inner sums of equations (2) and (3): ``1/K sum_k l(p, y_k)``, one log-softmax for all K peers.

    The mean over the counted pixels of each image, then over the images; an image without counted pixels adds 0.

    Args:
        logits: (B, C, H, W) of the network that learns.
        labels: (K, B, H, W) uint8 of its K peers; a value that is no class casts no vote.
        counted: (B, H, W) bool, the pixels of the mean.

    Returns:
        A scalar.
    """
    votes = (labels < logits.shape[1]) & counted
    index = torch.where(votes, labels, 0).movedim(0, 1).long()
    chosen = torch.log_softmax(logits, dim=1).gather(1, index)
    per_image = -(chosen * votes.movedim(0, 1)).sum(dim=(1, 2, 3)) / len(labels)
    return (per_image / counted.sum(dim=(1, 2)).clamp(min=1)).mean()


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
