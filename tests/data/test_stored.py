"""Stored labels: written, read back, and refused where they are something else."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from peerseg.data.stored import read_stored, write_stored
from peerseg.errors import PeersegError


def test_labels_and_confidence_come_back(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels, confidence = random.integers(0, 256, (2, 7, 9), dtype=np.uint8)
    write_stored(tmp_path, "day1/a.b", labels, confidence)
    found = read_stored(tmp_path, "day1/a.b")
    assert np.array_equal(found[0], labels)
    assert np.array_equal(found[1], confidence)


def test_another_picture_is_refused(tmp_path: Path) -> None:
    PIL.Image.new("L", (4, 3)).save(tmp_path / "a.png")
    with pytest.raises(PeersegError, match=r"has the shape \(3, 4\), expected \(height, width, 2\)"):
        read_stored(tmp_path, "a")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"nothing\.png' does not exist"):
        read_stored(tmp_path, "nothing")
