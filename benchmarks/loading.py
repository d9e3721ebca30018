"""Making views: one JPEG of 500 x 375 pixels to a crop of 512, beside a straightforward pipeline."""

import random
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL.Image
import torch
import torchvision.transforms.functional as TF
from torch import Tensor

from benchmarks.measuring import interleaved
from benchmarks.speed import preset_step
from peerseg.data.color import Jitter, strong_color
from peerseg.data.dataset import Image
from peerseg.data.files import read_image
from peerseg.data.randomness import generator
from peerseg.data.views import Floats, Geometry, draw_geometry, full_of, standardize, unit, view_image
from peerseg.report.table import Table

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SCALES = (0.5, 0.75, 1.0, 1.5, 1.75, 2.0)
CROP = 512
VIEWS = 60  # a repetition
VIEWS_A_STEP = 8  # of 256 pixels; half of them with a strong view
REPETITIONS = 7


def table() -> Table:
    """Milliseconds a view, and views a second."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "photograph.jpg"
        write_photograph(path)
        ways = {
            "ours": lambda: [ours(path, k) for k in range(VIEWS)],
            "ours, published resizing": lambda: [ours(path, k, published=True) for k in range(VIEWS)],
            "ours, and a strong view": lambda: [ours(path, k, strong=True) for k in range(VIEWS)],
            "Pillow and torchvision": lambda: [straightforward(path, k) for k in range(VIEWS)],
        } | _stages(path)
        threads = torch.get_num_threads()
        torch.set_num_threads(1)  # as a process that makes batches has
        taken = interleaved(ways, REPETITIONS)
        torch.set_num_threads(threads)
    plain = taken["Pillow and torchvision"]
    rows = [
        (way, f"{1000 * sample.median / VIEWS:.1f}", f"{VIEWS / sample.median:.0f}", str(sample.over(plain)))
        for way, sample in taken.items()
    ]
    step = preset_step("float32", False), preset_step("auto", True)
    slow, fast = interleaved({"slow": step[0], "fast": step[1]}, 3).values()
    for way, sample in (("float32", slow), ("as this machine does by default", fast)):
        rows.append(
            (f"what a step of the default preset asks for, {way}", "-", f"{VIEWS_A_STEP / sample.median:.0f}", "-")
        )
    return Table(("pipeline", "ms a view", "views a second and worker", "ratio (least to greatest)"), tuple(rows))


def _stages(path: Path) -> dict[str, Callable[[], object]]:
    """What the time of ours is made of."""
    image = read_image(path)
    places = [_place(image, k) for k in range(VIEWS)]
    shown = [view_image(image, place) for place in places]
    return {
        "of ours: decoding": lambda: [read_image(path) for _ in range(VIEWS)],
        "of ours: cutting and resizing": lambda: [view_image(image, place) for place in places],
        "of ours: standardizing": lambda: [
            standardize(part, 255, MEAN, STD, place) for part, place in zip(shown, places, strict=True)
        ],
    }


def _place(image: Image, k: int) -> Geometry:
    height, width = image.shape[:2]
    return draw_geometry(generator(0, k), (height, width), (CROP, CROP), SCALES)


def write_photograph(path: Path) -> None:
    """Write a picture as detailed as a photograph: shapes of every size and a little noise.

    Args:
        path: The file.
    """
    chance = np.random.default_rng(0)
    layers = [
        np.asarray(
            PIL.Image.fromarray(chance.integers(0, 256, (side, side * 4 // 3, 3), dtype=np.uint8)).resize(
                (500, 375), PIL.Image.Resampling.BICUBIC
            ),
            np.float32,
        )
        / side**0.5
        for side in (3, 12, 48, 192)
    ]
    picture = sum(layers) / sum(1 / side**0.5 for side in (3, 12, 48, 192))
    PIL.Image.fromarray(np.asarray(picture).clip(0, 255).astype(np.uint8)).save(path, quality=97)


def ours(path: Path, k: int, *, published: bool = False, strong: bool = False) -> Floats:
    """One view as the stream makes it.

    Args:
        path: Of the picture.
        k: Which view.
        published: Resized as the authors did.
        strong: Make a strong view of it too.

    Returns:
        (3, 512, 512).
    """
    image = read_image(path)
    geometry = _place(image, k)
    shown = view_image(image, geometry, published=published)
    if strong:
        other = strong_color(unit(shown, full_of(image)), Jitter(), generator(0, k, "strong"))
        standardize(other, 1.0, MEAN, STD, geometry)
    return standardize(shown, full_of(image), MEAN, STD, geometry)


def straightforward(path: Path, k: int) -> Tensor:
    """The same view as one would write it at first: the whole picture resized, made a tensor, padded, cropped.

    Args:
        path: Of the picture.
        k: Which view.

    Returns:
        (3, 512, 512).
    """
    chance = random.Random(k)
    image = PIL.Image.open(path).convert("RGB")
    if chance.random() < 0.5:
        image = TF.hflip(image)
    scale = chance.choice(SCALES)
    image = TF.resize(image, [int(image.height * scale), int(image.width * scale)])
    x: Tensor = TF.normalize(TF.to_tensor(image), MEAN, STD)
    down, across = (max(CROP - side, 0) for side in x.shape[1:])
    x = TF.pad(x, [across // 2, down // 2, across - across // 2, down - down // 2])
    top, left = (chance.randint(0, side - CROP) for side in x.shape[1:])
    cropped: Tensor = TF.crop(x, top, left, CROP, CROP).contiguous()
    return cropped
