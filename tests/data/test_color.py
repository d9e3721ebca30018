"""Strong color: valid for any number of channels, a function of its generator, and never a change of place."""

import numpy as np
import numpy.typing as npt
import pytest

from peerseg.data.color import Jitter, blur, strong_color
from peerseg.data.randomness import generator

NOTHING = {"chance": 0.0, "brightness": 0.0, "contrast": 0.0, "saturation": 0.0, "cast": 0.0, "gray": 0.0, "blur": 0.0}
Floats = npt.NDArray[np.float32]


def only(**changes: float) -> Jitter:
    """A jitter that does nothing but this."""
    return Jitter(**(NOTHING | changes))


@pytest.fixture(params=[1, 3, 5])
def image(request: pytest.FixtureRequest) -> Floats:
    """A random picture of 12 x 10 pixels with one, three or five channels."""
    return np.random.default_rng(0).random((12, 10, request.param), np.float32)


def test_a_strong_view_is_a_function_of_its_generator(image: Floats) -> None:
    before = image.copy()
    views = [strong_color(image, Jitter(chance=1), generator(0, step)) for step in (1, 1, 2)]
    assert all(view.shape == image.shape and view.dtype == np.float32 for view in views)
    assert np.array_equal(views[0], views[1])
    assert not np.allclose(views[0], views[2], atol=1e-3)
    assert np.array_equal(image, before), "the weak view was changed in place"


def test_no_jitter_changes_nothing(image: Floats) -> None:
    assert np.array_equal(strong_color(image, only(), generator(0)), image)


def test_light_moves_no_pixel(image: Floats) -> None:
    """What has one color before has one color after, wherever it lies."""
    blocks = np.where(np.arange(10)[None, :, None] < 4, image[0, 0], image[1, 1]) * np.ones_like(image)
    view = strong_color(blocks, Jitter(chance=1, gray=0, blur=0), generator(3))
    assert np.ptp(view[:, :4], axis=(0, 1)).max() < 1e-6
    assert np.ptp(view[:, 4:], axis=(0, 1)).max() < 1e-6
    assert not np.allclose(view[:, :4].mean(axis=(0, 1)), view[:, 4:].mean(axis=(0, 1)), atol=1e-3)


def test_brightness_scales_all_channels_alike(image: Floats) -> None:
    factors = []
    for k in range(50):
        ratio = strong_color(image, only(chance=1, brightness=0.4), generator(k)) / image
        assert np.ptp(ratio) < 1e-4
        factors.append(float(ratio.mean()))
    assert 0.6 <= min(factors) < 0.7
    assert 1.3 < max(factors) <= 1.4


def test_cast_scales_each_channel_by_itself(image: Floats) -> None:
    ratio = strong_color(image, only(chance=1, cast=0.15), generator(1)) / image
    assert np.ptp(ratio, axis=(0, 1)).max() < 1e-4
    factors = ratio.mean(axis=(0, 1))
    assert ((factors > 0.85) & (factors < 1.15)).all()
    assert len(set(factors.round(3).tolist())) == image.shape[2]


def test_contrast_keeps_the_mean(image: Floats) -> None:
    view = strong_color(image, only(chance=1, contrast=0.4), generator(1))
    assert view.mean() == pytest.approx(image.mean(), abs=1e-5)
    assert abs(view.std() / image.std() - 1) > 0.01


def test_saturation_keeps_the_gray_of_every_pixel(image: Floats) -> None:
    view = strong_color(image, only(chance=1, saturation=0.4), generator(1))
    assert np.allclose(view.mean(axis=2), image.mean(axis=2), atol=1e-6)
    assert np.allclose(view, image, atol=1e-6) == (image.shape[2] == 1), "one channel has no color to lose"


def test_gray_leaves_no_color(image: Floats) -> None:
    view = strong_color(image, only(gray=1), generator(0))
    assert view.shape == image.shape
    assert np.array_equal(view, np.repeat(image.mean(axis=2, keepdims=True), image.shape[2], axis=2))


def test_blur_alone_blurs(image: Floats) -> None:
    views = [strong_color(image, only(blur=1), generator(k)) for k in range(20)]
    assert all(view.dtype == np.float32 for view in views)
    contrast = [view.std() / image.std() for view in views]
    assert max(contrast) <= 1.001
    assert min(contrast) < 0.5
    assert len({round(float(value), 3) for value in contrast}) > 10, "the width is drawn anew"


def test_chances_are_kept() -> None:
    image = np.random.default_rng(0).random((4, 4, 3), np.float32)
    changed = [not np.array_equal(strong_color(image, only(gray=0.2), generator(k)), image) for k in range(400)]
    assert 0.14 < np.mean(changed) < 0.26


def test_blur_is_a_gaussian_around_every_pixel() -> None:
    point = np.zeros((21, 21, 1), np.float32)
    point[10, 10] = 1
    spread = blur(point, 1.5)[..., 0]
    squared = (np.indices((21, 21)) - 10) ** 2
    assert spread.sum() == pytest.approx(1, abs=1e-5)
    assert (squared[0] * spread).sum() == pytest.approx(1.5**2, rel=0.1)
    assert np.allclose(spread, spread[::-1, ::-1])
    assert np.allclose(spread, spread.T)
    assert spread[10, 10] == spread.max()


@pytest.mark.parametrize("sigma", [0.1, 1.0, 3.0])
def test_blur_repeats_edges(sigma: float) -> None:
    flat = np.full((5, 4, 2), 0.3, np.float32)
    assert np.allclose(blur(flat, sigma), flat, atol=1e-6)


def test_a_wider_blur_blurs_more(image: Floats) -> None:
    assert blur(image, 2.0).std() < blur(image, 0.7).std() < image.std()
