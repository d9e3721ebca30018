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
    """

    images: Tensor
    inside: Tensor
    strong: tuple[Tensor, ...] = ()


@dataclass(frozen=True)
class Batch:
    """What one step learns from.

    Args:
        images: (B, C, H, W) labeled images.
        masks: (B, H, W) uint8.
        inside: (B, H, W) bool, false on padding.
        unlabeled: Views of unlabeled images, or None if the method wants none.
        partner: What CutMix mixes in, where it is not the batch's own neighbor.
        boxes: (B, H, W) bool, where the partner shows.
        files: What a message names.
    """

    images: Tensor
    masks: Tensor
    inside: Tensor
    unlabeled: View | None = None
    partner: View | None = None
    boxes: Tensor | None = None
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

    def view(one: View | None) -> View | None:
        return one and View(change(one.images), change(one.inside), tuple(change(strong) for strong in one.strong))

    return replace(
        batch,
        images=change(batch.images),
        masks=change(batch.masks),
        inside=change(batch.inside),
        unlabeled=view(batch.unlabeled),
        partner=view(batch.partner),
        boxes=None if batch.boxes is None else change(batch.boxes),
    )
