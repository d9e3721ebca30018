"""How an image is shown to the networks: whole or in windows, mirrored, at several sizes, or as the paper did."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import EllipsisType

from peerseg.errors import PeersegError


@dataclass(frozen=True)
class Protocol:
    """How an image is shown to the networks.

    Args:
        window: Side of the square windows in pixels, or None for the whole image at once.
        overlap: Share of a window that the next one shows again.
        flip: Show the mirrored image too, and average.
        scales: Show the image at these sizes, and average.
        published: As the paper's numbers were made: see ``peerseg.inference.published``.
    """

    window: int | None = None
    overlap: float = 1 / 3
    flip: bool = False
    scales: tuple[float, ...] = (1.0,)
    published: bool = False

    def __post_init__(self) -> None:
        if self.window is not None and self.window < 1:
            raise PeersegError(
                f"evaluation.window is {self.window!r}, expected a number of pixels, or null for whole images"
            )
        if not 0 <= self.overlap < 1:
            raise PeersegError(f"evaluation.overlap is {self.overlap!r}, expected at least 0 and below 1")
        if not self.scales or min(self.scales) <= 0:
            raise PeersegError(f"evaluation.scales is {list(self.scales)!r}, expected positive sizes such as [1.0]")
        if self.published and (self.window is None or self.flip or self.scales != (1.0,)):
            raise PeersegError(
                "evaluation.published shows an image once, in windows: set evaluation.window, and leave evaluation.flip and "
                "evaluation.scales as they are"
            )


WHOLE = Protocol()


def windows(height: int, width: int, protocol: Protocol) -> Iterator[tuple[EllipsisType, slice, slice]]:
    """Where the windows of an image lie.

    Args:
        height: Of the image.
        width: Of the image.
        protocol: With a window.

    Yields:
        An index of the last two axes of (..., H, W).
    """
    assert protocol.window is not None, "asked for with one"
    for top in window_starts(height, protocol.window, protocol.overlap):
        for left in window_starts(width, protocol.window, protocol.overlap):
            yield ..., slice(top, top + protocol.window), slice(left, left + protocol.window)


def window_starts(length: int, window: int, overlap: float) -> list[int]:
    """Where windows begin along one side; the last one is moved back inside.

    Args:
        length: Of the side.
        window: Of a window.
        overlap: Share of a window that the next one shows again.

    Returns:
        The starts, rising.
    """
    stride = math.ceil(window * (1 - overlap) - 1e-9)
    count = max(math.ceil((length - window) / stride), 0) + 1
    return [max(0, min(k * stride, length - window)) for k in range(count)]
