"""What is mixed: random boxes or random classes, and the choice of one of two views by them.

Both are binary, so labels mix as images do.
"""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor


def draw_boxes(
    random: np.random.Generator,
    height: int,
    width: int,
    *,
    count: int = 3,
    smallest: float = 0.25,
    largest: float = 0.5,
) -> npt.NDArray[np.bool_]:
    """Draw the boxes of one sample. Where two boxes overlap, the first view shows again.

    Args:
        random: Where the choices come from.
        height: Of the view.
        width: Of the view.
        count: How many boxes share the area; 1 is the single-box variant.
        smallest: Least area of all boxes together, as a share of the view.
        largest: Greatest.

    Returns:
        (H, W), true where the second view shows.
    """
    chosen = np.zeros((height, width), bool)
    for _ in range(count):
        area, aspect = random.uniform(smallest, largest), random.uniform()
        shares = np.array([area**aspect, area ** (1 - aspect)]) * np.sqrt(1 / count)
        h, w = (int(side) for side in np.round(shares * (height, width)))
        top, left = (round(room * random.uniform()) for room in (height - h, width - w))
        chosen[top : top + h, left : left + w] ^= True
    return chosen


def mix(first: Tensor, second: Tensor, boxes: Tensor) -> Tensor:
    """``(1 - M) * first + M * second`` for a binary M, of images, label maps or any map of pixels.

    Args:
        first: (B, H, W) or (B, C, H, W).
        second: The same shape.
        boxes: (B, H, W) bool, the M of the paper.

    Returns:
        The mixed tensor.
    """
    return torch.where(boxes if first.ndim == 3 else boxes[:, None], second, first)


def draw_classes(labels: Tensor, classes: int, random: torch.Generator) -> Tensor:
    """Draw half of the classes of each image, rounded down.

    Args:
        labels: (B, H, W) uint8.
        classes: C.
        random: Where the choice comes from, on the CPU.

    Returns:
        (B, H, W) bool, true where an image shows one of its drawn classes.
    """
    drawn = []
    for image in labels:
        present = (torch.bincount(image.flatten().long(), minlength=classes)[:classes] > 0).nonzero().flatten().cpu()
        chosen = present[torch.randperm(len(present), generator=random)][: len(present) // 2]
        drawn.append(torch.isin(image, chosen.to(image)))
    return torch.stack(drawn)
