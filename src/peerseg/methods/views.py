"""What of a batch a term of the loss looks at: its labeled and its unlabeled side, or two views mixed into one."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from peerseg.data.batch import Batch, View
from peerseg.data.labels import IGNORE
from peerseg.data.mixing import mix
from peerseg.methods.base import Counted

Reduction = Literal["concatenation", "sum"]


@dataclass(frozen=True)
class Side:
    """One side of a term: its images, the pixels that count, and its share of the term.

    Args:
        name: "labeled" or "unlabeled".
        images: (B, C, H, W).
        counted: (B, H, W) bool.
        share: Of the term.
    """

    name: str
    images: Tensor
    counted: Tensor
    share: float


def sides_of(batch: Batch, counted: Counted, reduction: Reduction = "concatenation") -> tuple[Side, Side]:
    """Both sides of a term over labeled and unlabeled images.

    Args:
        batch: With unlabeled images.
        counted: "inside": pixels of the photographs that are not ignored; "all": every pixel.
        reduction: "concatenation": one mean over all images; "sum": of two means.

    Returns:
        The labeled side, the unlabeled side.
    """
    view = unlabeled_of(batch)
    known, open_ = batch.inside & (batch.masks != IGNORE), view.inside
    total = len(batch.images) + len(view.images)
    shares = [1.0, 1.0] if reduction == "sum" else [len(batch.images) / total, len(open_) / total]
    return (
        Side("labeled", batch.images, of_all(known, counted), shares[0]),
        Side("unlabeled", view.images, of_all(open_, counted), shares[1]),
    )


def of_all(inside: Tensor, counted: Counted) -> Tensor:
    """The pixels that count.

    Args:
        inside: (B, H, W) bool.
        counted: "inside": these; "all": every pixel.

    Returns:
        (B, H, W) bool.
    """
    return inside if counted == "inside" else torch.ones_like(inside)


def unlabeled_of(batch: Batch) -> View:
    """The unlabeled view of a batch that was asked for it.

    Args:
        batch: The batch.

    Returns:
        The view.
    """
    assert batch.unlabeled is not None, "asked for in `wants`"
    return batch.unlabeled


def mixed_view(batch: Batch, k: int = 0, *, strong: bool) -> View:
    """What is learned from with CutMix: each unlabeled image with its partner in the boxes.

    Args:
        batch: With unlabeled images and boxes.
        k: Which boxes, and which strong view.
        strong: Mix strong views rather than the plain ones.

    Returns:
        The mixed images, and which of their pixels lie inside a photograph.
    """
    first = unlabeled_of(batch)
    second = _neighbors(first) if batch.partner is None else batch.partner
    ones, others = (view.strong[k] if strong else view.images for view in (first, second))
    return View(mix(ones, others, batch.boxes[k]), mix(first.inside, second.inside, batch.boxes[k]))


def answer_both(batch: Batch, answer: Callable[[Tensor, str], Tensor]) -> tuple[Tensor, Tensor]:
    """What is said of both images of each mixed one; ``mix`` the two by the boxes.

    Args:
        batch: With unlabeled images.
        answer: Takes (B, C, H, W) plain images and the name of their view to labels or probabilities.

    Returns:
        The answers to the unlabeled images, and to their partners: the same ones in other order for neighbors.
    """
    view = unlabeled_of(batch)
    first = answer(view.images, "unlabeled")
    second = first[_pairs(len(first))] if batch.partner is None else answer(batch.partner.images, "partner")
    return first, second


def _pairs(count: int) -> Tensor:
    return torch.arange(count) ^ 1


def _neighbors(view: View) -> View:
    order = _pairs(len(view.images))
    return View(view.images[order], view.inside[order], tuple(strong[order] for strong in view.strong))
