"""Pictures for people, of any channels and depth."""

import base64
import io
from typing import Any

import numpy as np
import PIL.Image
import pytest

from peerseg.report.pictures import data_uri, fitted, overlay, to_rgb


def random_image(channels: int, dtype: Any, top: int = 256) -> np.ndarray:
    return np.random.default_rng(0).integers(0, top, (7, 9, channels)).astype(dtype)


def test_rgb_is_shown_as_it_is() -> None:
    image = random_image(3, np.uint8)
    np.testing.assert_array_equal(to_rgb(image), image)


@pytest.mark.parametrize("channels", [1, 2])
def test_few_channels_are_gray(channels: int) -> None:
    image = random_image(channels, np.uint8)
    np.testing.assert_array_equal(to_rgb(image), np.repeat(image[:, :, :1], 3, axis=2))


def test_of_many_channels_three_are_shown() -> None:
    image = random_image(6, np.uint8)
    np.testing.assert_array_equal(to_rgb(image), image[:, :, :3])


@pytest.mark.parametrize(("dtype", "top"), [(np.uint16, 4000), (np.float32, 1000)])
def test_other_depths_are_stretched(dtype: Any, top: int) -> None:
    image = random_image(1, dtype, top)
    shown = to_rgb(image)

    assert shown.dtype == np.uint8
    assert (shown.min(), shown.max()) == (0, 255)
    order = np.argsort(image[:, :, 0], axis=None)
    assert (np.diff(shown[:, :, 0].ravel()[order].astype(int)) >= 0).all()


def test_a_constant_deep_image_can_be_shown() -> None:
    assert np.unique(to_rgb(np.full((4, 4, 1), 900, np.uint16))).size == 1


def test_an_overlay_is_half_of_each_and_does_not_overflow() -> None:
    white, red = np.full((1, 1, 3), 255, np.uint8), np.array([[[255, 0, 100]]], np.uint8)
    np.testing.assert_array_equal(overlay(white, red), [[[255, 127, 177]]])


@pytest.mark.parametrize(("shape", "factor"), [((20, 30, 3), 6), ((64, 64), 2), ((128, 300, 3), 1), ((200, 150), 1)])
def test_a_picture_inside_a_page_is_the_picture_enlarged(shape: tuple[int, ...], factor: int) -> None:
    picture = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    head, _, text = data_uri(picture).partition(",")

    assert head == "data:image/png;base64"
    with PIL.Image.open(io.BytesIO(base64.b64decode(text))) as file:
        np.testing.assert_array_equal(np.asarray(file), picture.repeat(factor, 0).repeat(factor, 1))


def test_a_large_picture_is_thinned_out() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (600, 1100), dtype=np.uint8)
    np.testing.assert_array_equal(fitted(picture), picture[::3, ::3])
