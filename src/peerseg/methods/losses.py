"""The losses, as pure functions: cross-entropy to hard labels, the peers' or a human's; and the distance to soft ones."""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from peerseg.data.labels import UNLABELED
from peerseg.errors import check_between
from peerseg.networks.choosing import choose


def cross_supervision(logits: Tensor, labels: Tensor, counted: Tensor, weights: Tensor | None = None) -> Tensor:
    """The inner sums of equations (2) and (3): ``1/K sum_k l(p, y_k) = -1/K sum_c V_c log p_c``, V the vote counts.

    The mean over the counted pixels of each image, then over the images; an image without counted pixels adds 0.

    Args:
        logits: (B, C, H, W) of the network that learns.
        labels: (K, B, H, W) uint8 of its K peers; a value that is no class casts no vote.
        counted: (B, H, W) bool, the pixels of the mean.
        weights: (B, H, W), what the votes of each pixel count; 1 where None. The mean divides by the pixels all the same.

    Returns:
        A scalar.
    """
    loss: Tensor = _Entropy.apply(logits, labels, counted, weights)
    return loss


class _Entropy(torch.autograd.Function):
    """``cross_supervision`` with its gradient written out, which needs no more kept than the logits themselves."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, labels: Tensor, counted: Tensor, weights: Tensor | None) -> Tensor:
        """The mean of ``-1/K sum_c V_c log p_c``."""
        ctx.save_for_backward(logits, labels, counted, weights)
        log_p = torch.log_softmax(logits, dim=1, dtype=_exact(logits))
        votes = count_votes(labels, counted, like=log_p, weights=weights)
        return -((votes * log_p).sum(dim=(1, 2, 3)) / _votes_in_all(labels, counted)).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, None, None, None]:
        """``(K p - V) / K`` for each pixel: what the network believes, minus the mean of what its peers say."""
        logits, labels, counted, weights = ctx.saved_tensors
        p = probabilities(logits)
        votes = count_votes(labels, counted, like=p, weights=weights)
        believed = p.mul_(votes.sum(dim=1, keepdim=True)).sub_(votes)
        share = slope / _votes_in_all(labels, counted)
        return believed.mul_(share[:, None, None, None]).to(logits.dtype), None, None, None


def _votes_in_all(labels: Tensor, counted: Tensor) -> Tensor:
    """(B,), how many votes the mean over peers, pixels and images divides by."""
    return counted.sum(dim=(1, 2)).clamp(min=1) * labels.shape[0] * labels.shape[1]


@torch.no_grad()
def count_votes(labels: Tensor, counted: Tensor, like: Tensor, weights: Tensor | None = None) -> Tensor:
    """How many peers chose each class.

    Args:
        labels: (K, B, H, W) uint8.
        counted: (B, H, W) bool; other pixels have no votes.
        like: (B, C, H, W), whose shape and type the result has.
        weights: (B, H, W), what a vote counts; 1 where None.

    Returns:
        (B, C, H, W).
    """
    votes = torch.zeros_like(like)
    for answer in labels:
        voted = (answer < like.shape[1]) & counted
        index = torch.where(voted, answer, 0).long()
        worth = voted.to(votes.dtype) if weights is None else voted * weights.to(votes.dtype)
        votes.scatter_add_(1, index[:, None], worth[:, None])
    return votes


@torch.no_grad()
def agreement(labels: Tensor) -> Tensor:
    """How many of the peers say what most of them say.

    Args:
        labels: (K, B, H, W) uint8; 255 casts no vote.

    Returns:
        (B, H, W) in float32: the largest number of equal votes, as a share of the peers.
    """
    equal = [((labels == answer) & (answer < UNLABELED)).sum(dim=0) for answer in labels]
    return torch.stack(equal).amax(dim=0) / len(labels)


def consistency(logits: Tensor, target: Tensor, counted: Tensor, weights: Tensor | None = None) -> Tensor:
    """``(softmax(z) - q)^2``: the mean over the classes, the counted pixels of each image, and the images.

    Args:
        logits: (B, C, H, W) of the network that learns.
        target: (B, C, H, W) probabilities.
        counted: (B, H, W) bool.
        weights: (B,), what each image counts; 1 where None. The mean divides by the images all the same.

    Returns:
        A scalar.
    """
    images = mean_of_images((probabilities(logits) - target).square().mean(dim=1), counted)
    return (images if weights is None else images * weights).mean()


def mean_of_images(values: Tensor, counted: Tensor) -> Tensor:
    """The mean over the counted pixels of each image; 0 for an image without any.

    Args:
        values: (B, H, W).
        counted: (B, H, W) bool.

    Returns:
        (B,).
    """
    return (values * counted).sum(dim=(1, 2)) / counted.sum(dim=(1, 2)).clamp(min=1)


def probabilities(logits: Tensor) -> Tensor:
    """Softmax over the classes, in at least 32 bits.

    Args:
        logits: (B, C, H, W).

    Returns:
        The same shape.
    """
    return torch.softmax(logits, dim=1, dtype=_exact(logits))


def supervision(logits: Tensor, masks: Tensor, hardest: int | None = None, certain: float = 0.7) -> Tensor:
    """Equation (1) for one network: the human is the only peer, and counts where there is a class.

    Args:
        logits: (B, C, H, W).
        masks: (B, H, W) uint8; 254 and 255 are not counted.
        hardest: Given: only hard pixels are counted, see ``hard_pixels``.
        certain: Likewise.

    Returns:
        A scalar.
    """
    counted = masks < UNLABELED if hardest is None else hard_pixels(logits, masks, hardest, certain)
    return cross_supervision(logits, masks[None], counted)


@torch.no_grad()
def hard_pixels(logits: Tensor, masks: Tensor, hardest: int, certain: float) -> Tensor:
    """Online hard example mining, image by image: pixels whose class the network is not certain of, or enough others.

    Args:
        logits: (B, C, H, W).
        masks: (B, H, W) uint8; 254 and 255 are never hard.
        hardest: At least this many pixels of an image, the least certain ones; an image with fewer labels keeps them all.
        certain: A pixel is hard where its class has at most this probability.

    Returns:
        (B, H, W) bool.
    """
    labeled = masks < UNLABELED
    target = torch.where(labeled, masks, 0).long()
    probability = probabilities(logits).gather(1, target[:, None])[:, 0].where(labeled, 1.0)
    # Reference: a whole sort there; one value of it is all that is needed. Without enough labels it is 1.
    limit = probability.flatten(1).kthvalue(min(hardest, masks[0].numel())).values.clamp(min=certain)
    return labeled & (probability <= limit[:, None, None])


def supervision_of(hardest: int | None, certain: float) -> Callable[[Tensor, Tensor], Tensor]:
    """A method's supervised term: of all labeled pixels, or of the hard ones.

    Args:
        hardest: Of an image; None: every labeled pixel counts.
        certain: A probability.

    Returns:
        What takes logits (B, C, H, W) and masks (B, H, W) to a scalar.
    """
    if hardest is not None:
        check_between("method.hardest", hardest, 1)
    check_between("method.certain", certain, 0, 1)
    return partial(supervision, hardest=hardest, certain=certain)


def hard_labels(logits: Tensor, threshold: float = 0.0) -> Tensor:
    """``pmax``: what a network answers, as one byte a pixel. No gradient passes.

    Args:
        logits: (B, C, H, W).
        threshold: Pixels whose probability is not above it cast no vote (255).

    Returns:
        (B, H, W) uint8.
    """
    labels = choose(logits.detach())
    if threshold <= 0:
        return labels
    sure = probabilities(logits.detach()).amax(dim=1) > threshold
    return torch.where(sure, labels, 255)


def _exact(logits: Tensor) -> torch.dtype:
    """At least 32 bits, whatever the pass was made in."""
    return torch.promote_types(logits.dtype, torch.float32)
