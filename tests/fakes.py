"""Tiny data sets in the trees they are published in."""

from pathlib import Path

import numpy as np
import PIL.Image

from peerseg.data.cityscapes import RAW
from peerseg.data.labels import spread_colors

CITIES = {"train": ("aachen", "jena", "ulm"), "val": ("lindau",)}


def write_voc(root: Path, train: int = 12, val: int = 2, size: tuple[int, int] = (50, 70)) -> Path:
    """``VOCdevkit/VOC2012``: photographs, index masks to train, palette masks to judge; borders are void."""
    ids = [f"2007_{k:06d}" for k in range(train + val)]
    judges = ids[:: max((train + val) // val, 1)][:val]
    for k, id in enumerate(ids):
        _write(root / "JPEGImages" / f"{id}.jpg", _photograph(k, size))
        mask = _mask(k, size, range(21))
        _write(root / "SegmentationClassAug" / f"{id}.png", mask)
        if id in judges:
            _write(root / "SegmentationClass" / f"{id}.png", mask, palette=True)
    lists = root / "ImageSets" / "Segmentation"
    lists.mkdir(parents=True)
    (lists / "val.txt").write_text("".join(f"{id}\n" for id in judges))
    return root


def write_cityscapes(root: Path, frames: int = 4, val: int = 2, size: tuple[int, int] = (48, 96)) -> Path:
    """``leftImg8bit`` and ``gtFine`` with both kinds of masks."""
    for part, cities in CITIES.items():
        for city in cities:
            for k in range(frames if part == "train" else val):
                id = f"{city}_{k:06d}_000019"
                _write(root / "leftImg8bit" / part / city / f"{id}_leftImg8bit.png", _photograph(k, size))
                raw = _mask(k, size, range(34), void=0)
                train = np.full_like(raw, 255)
                for index, value in enumerate(RAW):
                    train[raw == value] = index
                _write(root / "gtFine" / part / city / f"{id}_gtFine_labelIds.png", raw)
                _write(root / "gtFine" / part / city / f"{id}_gtFine_labelTrainIds.png", train)
    return root


def _photograph(seed: int, size: tuple[int, int]) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)


def _mask(seed: int, size: tuple[int, int], values: range, void: int = 255) -> np.ndarray:
    """Every value in stripes that move with the seed, and a void border."""
    columns = np.arange(size[1]) + 3 * seed
    mask = np.tile(np.array(values, np.uint8)[columns % len(values)], (size[0], 1))
    mask[:2] = mask[-2:] = void
    return mask


def _write(path: Path, pixels: np.ndarray, palette: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = PIL.Image.fromarray(pixels)
    if palette:
        picture.putpalette([part for color in spread_colors(256) for part in color])
    picture.save(path)
