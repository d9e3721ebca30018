"""What many tests need: tiny folders of images in the published layout, and tiny settings that train in a second."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest
import torch

import machine  # noqa: F401  # hides the accelerator, so that tests are the same everywhere
from peerseg.experiment.settings import Settings, settings_of

TINY = {
    "data.count": 10,
    "data.labeled": 3,
    "data.val": 2,
    "data.size": 24,
    "network.width": 4,
    "loader.batch": 2,
    "loader.crop": 16,
    "evaluation.every": 2,
    "steps": 4,
}
"""Overrides under which the demo recipe trains four steps in about a second."""


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    """Tensors here are tiny: threads would only wait for one another."""
    torch.set_num_threads(1)


@pytest.fixture
def tiny() -> Callable[..., Settings]:
    """Tiny settings of the demo recipe; more overrides as a mapping."""

    def make(overrides: dict[str, Any] | None = None, protocol: str | None = None) -> Settings:
        return settings_of("demo", TINY | (overrides or {}), protocol)[0]

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """``images/`` with eight pictures of 20 x 24 pixels, the first five with masks of the classes 0 and 1."""
    root = tmp_path / "photos"
    for k in range(8):
        write_picture(root / "images" / f"img{k}.png", seed=k)
        if k < 5:
            write_labels(root / "masks" / f"img{k}.png", seed=k)
    return root


def write_picture(path: Path, seed: int = 0, size: tuple[int, int] = (20, 24)) -> None:
    """Write a random RGB picture."""
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), dtype=np.uint8)
    PIL.Image.fromarray(pixels).save(path)


def write_labels(path: Path, seed: int = 0, size: tuple[int, int] = (20, 24), classes: int = 2) -> None:
    """Write an index mask in which every class occurs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    labels = np.random.default_rng(seed).integers(0, classes, size, dtype=np.uint8)
    labels.flat[:classes] = np.arange(classes)
    PIL.Image.fromarray(labels).save(path)
