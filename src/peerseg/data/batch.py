"""What one step learns from: a labeled batch, and views of unlabeled images where the method wants them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from torch import Tensor


@dataclass(frozen=True)
class View:
    """One view of some images.

    Args:
        images: (B, C, H, W) normalized.
        inside: (B, H, W) bool; false on padding, and where a partly labeled image says ignore.
        strong: The same crops in other colors, each (B, C, H, W).
        labels: (B, H, W) uint8 that were stored for these images, 255 where there is none; None if the method wants none.
        confidence: (B, H, W) float32, how sure whoever stored them was.
    """

    images: Tensor
    inside: Tensor
    strong: tuple[Tensor, ...] = ()
    labels: Tensor | None = None
    confidence: Tensor | None = None


@dataclass(frozen=True)
class Batch:
    """What one step learns from.

    Args:
        images: (B, C, H, W) labeled images.
        masks: (B, H, W) uint8.
        inside: (B, H, W) bool, false on padding.
        unlabeled: Views of unlabeled images, or None if the method wants none.
        partner: What CutMix mixes in, where it is not the batch's own neighbor.
        boxes: Where the partner shows, (B, H, W) bool for each mixed view; empty where nothing is mixed.
        files: What a message names.
    """

    images: Tensor
    masks: Tensor
    inside: Tensor
    unlabeled: View | None = None
    partner: View | None = None
    boxes: tuple[Tensor, ...] = ()
    files: tuple[str, ...] = ()


def cut(batch: Batch, parts: int) -> Iterator[Batch]:
    """A batch in equal parts, to be learned from one after another.

    Args:
        batch: The batch.
        parts: How many; both numbers of images are multiples of it.

    Yields:
        The parts, in order.
    """
    for k in range(parts):
        yield map_tensors(batch, lambda tensor, k=k: tensor.chunk(parts)[k])  # type: ignore[misc]  # bound at once


def map_tensors(batch: Batch, change: Callable[[Tensor], Tensor]) -> Batch:
    """A batch with every tensor changed, such as moved.

    Args:
        batch: The batch.
        change: Applied to every tensor.

    Returns:
        The new batch.
    """

    def maybe(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else change(tensor)

    def view(one: View | None) -> View | None:
        if one is None:
            return None
        strong = tuple(change(strong) for strong in one.strong)
        return View(change(one.images), change(one.inside), strong, maybe(one.labels), maybe(one.confidence))

    return replace(
        batch,
        images=change(batch.images),
        masks=change(batch.masks),
        inside=change(batch.inside),
        unlabeled=view(batch.unlabeled),
        partner=view(batch.partner),
        boxes=tuple(change(boxes) for boxes in batch.boxes),
    )
