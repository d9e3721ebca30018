"""The published algorithms, transcribed plainly: a loop over pairs, every graph alive until the one backward.

They make their passes in our order (labels first) and draw our dropout, so that gradients can be compared bit by bit.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from peerseg.data.batch import Batch, View
from peerseg.data.labels import IGNORE, UNLABELED
from peerseg.methods import Clock
from peerseg.methods.passes import learn
from peerseg.networks import SegmentationNetwork

Networks = Sequence[SegmentationNetwork]


def plain_loss(networks: Networks, batch: Batch, clock: Clock, weight: float = 1.5) -> Tensor:
    """Algorithm 1: one mean over labeled and unlabeled images together, as in the published code.

    Args:
        networks: In training mode.
        batch: With unlabeled images.
        clock: The step.
        weight: Of the cross term.

    Returns:
        The loss, with the graphs of all networks on both views.
    """
    assert batch.unlabeled is not None, "made with them"
    known = [learn(f, batch.images, clock, j, "labeled") for j, f in enumerate(networks)]
    both = [
        torch.cat([known[j], learn(f, batch.unlabeled.images, clock, j, "unlabeled")]) for j, f in enumerate(networks)
    ]
    supervised = torch.stack([supervised_loss(logits, batch.masks) for logits in known]).sum()
    return supervised + weight * pair_loss(both, both)


def cutmix_loss(networks: Networks, batch: Batch, partner: View, clock: Clock, weight: float = 1.5) -> Tensor:
    """Algorithm 2: logits of both images are made by passes of their own and mixed.

    Args:
        networks: In training mode.
        batch: With unlabeled images and boxes.
        partner: What is mixed in.
        clock: The step.
        weight: Of the cross term.

    Returns:
        The loss, with the graphs of all networks on both views.
    """
    assert batch.unlabeled is not None, "made with them"
    box = batch.boxes[0][:, None].to(batch.images.dtype)
    answers = []
    for j, f in enumerate(networks):
        with torch.no_grad():
            first = learn(f, batch.unlabeled.images, clock, j, "unlabeled")
            second = learn(f, partner.images, clock, j, "partner")
            answers.append((1 - box) * first + box * second)
    mixed = (1 - box) * batch.unlabeled.images + box * partner.images
    seen = [learn(f, mixed, clock, j, "mixed") for j, f in enumerate(networks)]
    known = [learn(f, batch.images, clock, j, "labeled") for j, f in enumerate(networks)]
    supervised = torch.stack([supervised_loss(logits, batch.masks) for logits in known]).sum()
    return supervised + weight * pair_loss(seen, answers)


def pair_loss(seen: Sequence[Tensor], answers: Sequence[Tensor]) -> Tensor:
    """The cross term: every network learns the label of every other.

    Args:
        seen: (B, C, H, W) of each network, with its graph.
        answers: (B, C, H, W) of each network, to take labels from.

    Returns:
        A scalar.
    """
    count = len(seen)
    total = seen[0].new_zeros(())
    for left in range(count):
        for right in range(left + 1, count):
            total = total + F.cross_entropy(seen[left], answers[right].detach().argmax(dim=1))
            total = total + F.cross_entropy(seen[right], answers[left].detach().argmax(dim=1))
    return total / (count - 1)


def supervised_loss(logits: Tensor, masks: Tensor) -> Tensor:
    """Equation (1) of one network, over the pixels that have a class.

    Args:
        logits: (B, C, H, W).
        masks: (B, H, W) uint8.

    Returns:
        A scalar.
    """
    target = masks.long().where(masks < UNLABELED, IGNORE)
    each = F.cross_entropy(logits, target, ignore_index=IGNORE, reduction="none").sum(dim=(1, 2))
    return (each / (masks < UNLABELED).sum(dim=(1, 2)).clamp(min=1)).mean()
