"""Stored labels: written, read back, and refused where they are something else."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from peerseg.data.stored import StoredLabels, read_facts, read_stored, surety_of, write_facts, write_stored
from peerseg.errors import PeersegError


def test_labels_and_surety_come_back(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    labels, surety = random.integers(0, 256, (7, 9), dtype=np.uint8), random.integers(0, 2**16, (7, 9), dtype=np.uint16)
    write_stored(tmp_path, "day1/a.b", labels, surety)
    found = read_stored(tmp_path, "day1/a.b")
    assert np.array_equal(found[0], labels)
    assert np.array_equal(found[1], surety)
    assert [path.name for path in (tmp_path / "day1").iterdir()] == ["a.b.png"]


def test_only_labels_that_are_sure_enough_count(tmp_path: Path) -> None:
    confidence = np.array([[0.5, 0.6, 0.7, 0.9]], np.float32)
    surety = surety_of(confidence)
    write_stored(tmp_path, "a", np.array([[0, 0, 1, 1]], np.uint8), surety)
    write_facts(tmp_path, [int(surety[0, 1]), int(surety[0, 2])], {"share": 0.5})
    labels, sure = StoredLabels(tmp_path).read("a")
    assert labels.tolist() == [[255, 0, 1, 1]]
    assert np.allclose(sure, confidence, atol=3e-4)
    assert (sure <= confidence).all()
    assert (labels.dtype, sure.dtype) == (np.uint8, np.float32)
    assert read_facts(tmp_path) == {"share": 0.5, "limits": surety[0, 1:3].tolist()}


def test_very_sure_pixels_are_told_apart() -> None:
    confidence = np.array([0.99, 0.999, 0.9999, 0.99999, 0.999999, 1.0], np.float32)
    levels = surety_of(confidence).tolist()
    assert levels == sorted(set(levels))
    assert levels[-1] == 2**16 - 1


def test_labels_that_are_not_all_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match="holds no finished labels: give a folder that a run of dmt wrote"):
        StoredLabels(tmp_path)


def test_another_picture_is_refused(tmp_path: Path) -> None:
    PIL.Image.new("L", (4, 3)).save(tmp_path / "a.png")
    with pytest.raises(PeersegError, match=r"has the shape \(3, 4\), expected \(height, width, 3\)"):
        read_stored(tmp_path, "a")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"nothing\.png' does not exist"):
        read_stored(tmp_path, "nothing")
