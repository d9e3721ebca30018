"""What the values of a mask mean: classes, colors, and the two states of a pixel that has no class.

Inside, a mask is uint8: a class index, ``IGNORE`` (never trained on) or ``UNLABELED`` (taught by the peers alone).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from peerseg.errors import PeersegError

IGNORE = 255
UNLABELED = 254
MOST_CLASSES = 254

Color = tuple[int, int, int]
Mask = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class LabelSpace:
    """The classes of a data set, in the order of the network's outputs.

    Args:
        names: One name a class.
        colors: One RGB color a class, for palettes and color-coded masks.
    """

    names: tuple[str, ...]
    colors: tuple[Color, ...]

    def __post_init__(self) -> None:
        if not 1 < len(self.names) <= MOST_CLASSES:
            raise PeersegError(
                f"{len(self.names)} classes were given, expected 2 to {MOST_CLASSES} (255 means ignore, 254 unlabeled): "
                "merge classes in classes.yaml"
            )
        if len(self.names) != len(self.colors):
            raise PeersegError(
                f"{len(self.names)} class names but {len(self.colors)} colors: give every class one color"
            )
        if len(set(self.names)) < len(self.names):
            raise PeersegError(f"class names {list(self.names)!r} repeat: give every class its own name")

    def __len__(self) -> int:
        return len(self.names)

    def palette(self) -> list[int]:
        """The 768 numbers of a PNG palette: the class colors, then black, gray for unlabeled and white for ignore."""
        table = np.zeros((256, 3), np.uint8)
        table[: len(self)] = self.colors
        table[UNLABELED], table[IGNORE] = 128, 255
        return [int(value) for value in table.ravel()]

    def paint(self, labels: Mask) -> npt.NDArray[np.uint8]:
        """Color a label map.

        Args:
            labels: (H, W) class indices, 254 or 255.

        Returns:
            (H, W, 3) RGB.
        """
        return np.array(self.palette(), np.uint8).reshape(256, 3)[labels]


def spread_colors(count: int) -> tuple[Color, ...]:
    """Distinct colors for classes that brought none: the bit-interleaved table of the Pascal VOC palette.

    Args:
        count: How many.

    Returns:
        The colors; the first is black, as a background usually is.
    """

    def channel(index: int, bit: int) -> int:
        return sum(((index >> (3 * place + bit)) & 1) << (7 - place) for place in range(3))

    return tuple((channel(k, 0), channel(k, 1), channel(k, 2)) for k in range(count))


def labels_of(names: Sequence[str]) -> LabelSpace:
    """A label space for names alone, with spread colors.

    Args:
        names: The class names in order.

    Returns:
        The label space.
    """
    return LabelSpace(tuple(names), spread_colors(len(names)))


def value_table(
    values: Iterable[int], ignore: int | None = IGNORE, unlabeled: int | None = UNLABELED
) -> dict[int, int]:
    """What each value of a stored mask becomes.

    Args:
        values: The stored value of class 0, 1, 2 ...
        ignore: The stored value that is never trained on, or None.
        unlabeled: The stored value that only the peers teach, or None.

    Returns:
        Stored value -> class index, ``IGNORE`` or ``UNLABELED``. A class wins over the two states.
    """
    states = {value: state for value, state in ((ignore, IGNORE), (unlabeled, UNLABELED)) if value is not None}
    return states | {value: index for index, value in enumerate(values)}
