"""Drawn scenes that need no download: textured objects that hide one another, in light that changes from scene to scene.

What an object is follows from its outline and its stripes together; its color is a weak hint that the light can undo. The
numbers below were fixed on supervised runs alone (``docs/experiments/scenes.md``) and stay.
"""

import numpy as np
import numpy.typing as npt

from peerseg.data.dataset import Image, SegmentationDataset, Split
from peerseg.data.labels import IGNORE, LabelSpace, Mask
from peerseg.data.randomness import generator
from peerseg.data.splits import share
from peerseg.errors import PeersegError, check_between

Floats = npt.NDArray[np.float64]

SPACE = LabelSpace(
    ("ground", "disk", "box", "ring", "wedge", "cross"),
    ((90, 90, 90), (214, 69, 65), (65, 131, 215), (245, 171, 53), (38, 166, 91), (142, 68, 173)),
)
FREQUENCY = (0.34, 0.28, 0.18, 0.12, 0.08)  # of disk, box, ring, wedge and cross among the objects
STRIPES = (0.0, 0.9, 1.5, 0.6, 1.2)  # waves per 2 pi pixels of each class's own texture
OBJECTS = (4, 8)  # fewest and most in a scene
RADIUS = (0.10, 0.22)  # smallest and largest, in sides of the scene
COLOR_SPREAD = 0.10  # how far an object's color strays from its class's
LIGHT_SPREAD = 0.16  # how far the scene's light pulls each channel
NOISE = 0.14  # standard deviation of each pixel
VOID = 0.8  # half width of the border nobody labels, in pixels


class Shapes(SegmentationDataset):
    """Drawn scenes with exact masks and an ignored border around every object.

    Args:
        count: How many scenes; all but the last ``val`` are for training.
        seed: Same seed, same scenes.
        labeled: How many training scenes are labeled; None: all of them.
        val: How many scenes judge; None: a fifth.
        size: Height and width of a scene in pixels.
    """

    def __init__(
        self, count: int, seed: int = 0, *, labeled: int | None = None, val: int | None = None, size: int = 64
    ) -> None:
        check_between("data.size", size, 8)
        judges = share(count, 0.2) if val is None else val
        train = count - judges
        if count < 2 or judges < 1 or train < 1:
            raise PeersegError(
                f"{count} scenes with {judges} for val were asked for, expected at least one of each kind"
            )
        if labeled is not None and not 0 < labeled <= train:
            raise PeersegError(f"{labeled} labeled scenes were asked for, expected 1 to {train}")
        self.label_space = SPACE
        self.ids = tuple(f"scene-{k:05d}" for k in range(count))
        known = train if labeled is None else labeled
        self._split = Split(self.ids[:known], self.ids[known:train], self.ids[train:])
        self._seed, self._size = seed, size
        self._drawn: dict[str, tuple[Image, Mask]] = {}

    def image(self, id: str) -> Image:
        """One scene, (H, W, 3) uint8; see ``SegmentationDataset.image``."""
        return self._scene(id)[0]

    def mask(self, id: str) -> Mask:
        """Its mask; see ``SegmentationDataset.mask``."""
        return self._scene(id)[1]

    def split(self) -> Split:
        """Labeled scenes first, then unlabeled, then val."""
        return self._split

    def _scene(self, id: str) -> tuple[Image, Mask]:
        if id not in self._drawn:
            self._drawn[id] = draw_scene(generator(self._seed, int(id.removeprefix("scene-")), "scene"), self._size)
        return self._drawn[id]


def draw_scene(random: np.random.Generator, size: int) -> tuple[Image, Mask]:
    """Draw one scene.

    Args:
        random: Where every choice comes from.
        size: Height and width in pixels.

    Returns:
        (H, W, 3) uint8 image and (H, W) mask.
    """
    rows, columns = np.mgrid[:size, :size].astype(np.float64)
    picture = _ground(random, rows, columns)
    mask = np.zeros((size, size), np.uint8)
    for _ in range(int(random.integers(OBJECTS[0], OBJECTS[1] + 1))):
        kind = int(random.choice(len(FREQUENCY), p=FREQUENCY))
        y, x = random.uniform(0, size, 2)
        radius = random.uniform(*RADIUS) * size
        turn = random.uniform(0, 2 * np.pi)
        u = (columns - x) * np.cos(turn) + (rows - y) * np.sin(turn)
        v = (rows - y) * np.cos(turn) - (columns - x) * np.sin(turn)
        outside = _distance(kind, u, v, radius)
        color = np.array(SPACE.colors[kind + 1]) / 255 + random.uniform(-COLOR_SPREAD, COLOR_SPREAD, 3)
        stripes = 0.18 * np.sin(STRIPES[kind] * u + random.uniform(0, 2 * np.pi))
        inside = outside < 0
        picture[inside] = (color + stripes[..., None])[inside]
        mask[inside] = kind + 1
        mask[np.abs(outside) < VOID] = IGNORE
    light = 1 + random.uniform(-LIGHT_SPREAD, LIGHT_SPREAD, 3)
    picture = picture * light + random.normal(0, NOISE, picture.shape)
    return (picture.clip(0, 1) * 255).astype(np.uint8), mask


def _ground(random: np.random.Generator, rows: Floats, columns: Floats) -> Floats:
    base = random.uniform(0.25, 0.65, 3)
    waves = np.zeros_like(rows)
    for _ in range(3):
        across, down = random.normal(0, 0.5, 2)
        waves += np.sin(across * columns + down * rows + random.uniform(0, 2 * np.pi))
    return np.asarray(base + 0.07 * waves[..., None])


def _distance(kind: int, u: Floats, v: Floats, radius: float) -> Floats:
    """About how far a pixel lies outside an outline; negative inside."""
    across, along = np.abs(u), np.abs(v)
    far = np.hypot(u, v)
    if kind == 0:  # disk
        return np.asarray(far - radius)
    if kind == 1:  # box
        return np.asarray(np.maximum(across - 0.9 * radius, along - 0.7 * radius))
    if kind == 2:  # ring
        return np.asarray(np.abs(far - 0.75 * radius) - 0.3 * radius)
    if kind == 3:  # wedge
        return np.asarray(np.maximum(across * 0.87 + v * 0.5, -v) - 0.55 * radius)
    return np.asarray(  # cross
        np.minimum(np.maximum(across - radius, along - 0.3 * radius), np.maximum(along - radius, across - 0.3 * radius))
    )
