"""Views: image and mask stay aligned, show the part they should, and are padded with what does not count."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import PIL.Image
import pytest

from peerseg.data.labels import IGNORE
from peerseg.data.randomness import generator
from peerseg.data.views import (
    Geometry,
    draw_geometry,
    full_of,
    inside,
    pad,
    pad_mask,
    standardize,
    unit,
    view_image,
    view_mask,
)

# Odd image sizes: no row or column of a resized image falls exactly between two pixels, where either would be right.
GEOMETRIES = [
    Geometry(scaled=(31, 47), top=0, left=0, shown=(31, 47), crop=(31, 47), flip=False),
    Geometry(scaled=(31, 47), top=5, left=9, shown=(16, 16), crop=(16, 16), flip=False),
    Geometry(scaled=(15, 23), top=2, left=3, shown=(12, 20), crop=(12, 20), flip=False),
    Geometry(scaled=(15, 23), top=0, left=3, shown=(15, 20), crop=(32, 20), flip=True),
    Geometry(scaled=(54, 82), top=38, left=66, shown=(16, 16), crop=(16, 16), flip=True),
    Geometry(scaled=(62, 94), top=17, left=29, shown=(20, 24), crop=(20, 24), flip=False),
    Geometry(scaled=(43, 65), top=11, left=1, shown=(32, 40), crop=(32, 40), flip=True),
]


@pytest.fixture
def noise() -> npt.NDArray[np.uint8]:
    """A random picture of 31 x 47 pixels."""
    return np.random.default_rng(0).integers(0, 254, (31, 47, 3), dtype=np.uint8)


# What part of a picture of 31 x 47 pixels a view shows: the whole pixels nearest to it.
BOXES = [
    (GEOMETRIES[1], np.s_[5:21, 9:25]),
    (GEOMETRIES[3], np.s_[0:31, 6:47]),
    (GEOMETRIES[6], np.s_[8:31, 1:30]),
    (Geometry(scaled=(62, 94), top=18, left=30, shown=(20, 24), crop=(20, 24), flip=False), np.s_[9:19, 15:27]),
    (Geometry(scaled=(93, 141), top=12, left=33, shown=(15, 9), crop=(15, 9), flip=True), np.s_[4:9, 11:14]),
    (Geometry(scaled=(3100, 4700), top=3099, left=10, shown=(1, 8), crop=(1, 8), flip=False), np.s_[30:31, 0:1]),
]


def by_pillow(
    plane: npt.NDArray[np.generic], geometry: Geometry, box: tuple[slice, slice], how: PIL.Image.Resampling
) -> npt.NDArray[np.generic]:
    shown = np.asarray(PIL.Image.fromarray(np.ascontiguousarray(plane[box])).resize(geometry.shown[::-1], how))
    return shown[:, ::-1] if geometry.flip else shown


@pytest.mark.parametrize(("geometry", "box"), BOXES)
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_view_of_bytes_is_its_part_of_the_image_resized(
    geometry: Geometry, box: tuple[slice, slice], channels: int
) -> None:
    noise = np.random.default_rng(0).integers(0, 256, (31, 47, channels), dtype=np.uint8)
    shown = view_image(noise, geometry)
    assert shown.dtype == np.uint8
    for k in range(channels):
        expected = by_pillow(noise[..., k], geometry, box, PIL.Image.Resampling.BILINEAR)
        assert np.abs(shown[..., k].astype(int) - expected.astype(int)).max() <= 1


@pytest.mark.parametrize(("geometry", "box"), BOXES)
@pytest.mark.parametrize(("dtype", "full"), [(np.uint16, 65535), (np.float32, 1.0)])
def test_view_of_deeper_pixels_is_resized_without_rounding(
    geometry: Geometry, box: tuple[slice, slice], dtype: npt.DTypeLike, full: float
) -> None:
    deep = (np.random.default_rng(1).random((31, 47, 1)) * full).astype(dtype)
    shown = view_image(deep, geometry)
    assert shown.dtype == np.float32
    expected = by_pillow(deep[..., 0].astype(np.float32), geometry, box, PIL.Image.Resampling.BILINEAR)
    assert np.abs(shown[..., 0] - expected).max() < 1e-5 * full


@pytest.mark.parametrize(("geometry", "box"), BOXES)
def test_view_of_a_mask_is_its_part_by_the_nearest_pixel(
    geometry: Geometry, box: tuple[slice, slice], noise: npt.NDArray[np.uint8]
) -> None:
    expected = by_pillow(noise[..., 0], geometry, box, PIL.Image.Resampling.NEAREST)
    assert np.array_equal(view_mask(noise[..., 0], geometry), expected)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("axis", [0, 1])
def test_a_view_shows_what_the_crop_of_the_whole_resized_image_does(geometry: Geometry, axis: int) -> None:
    places = np.indices((31, 47))[axis].astype(np.float32)
    whole = np.asarray(PIL.Image.fromarray(places).resize(geometry.scaled[::-1], PIL.Image.Resampling.BILINEAR))
    rows, columns = (
        slice(start, start + n) for start, n in zip((geometry.top, geometry.left), geometry.shown, strict=True)
    )
    expected = whole[rows, columns][:, :: -1 if geometry.flip else 1]
    assert np.abs(view_image(places[..., None], geometry)[..., 0] - expected).max() < 1, "a pixel"


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("axis", [0, 1])
def test_image_and_mask_stay_aligned(geometry: Geometry, axis: int) -> None:
    """Values rise by 5 a pixel: the nearest pixel is at most half a step off, a shift by one pixel would be a whole one."""
    ramp = (5 * np.indices((31, 47))[axis]).astype(np.uint8)
    image = pad(view_image(ramp[..., None], geometry)[..., 0], geometry, 0)
    mask = pad_mask(view_mask(ramp, geometry), geometry)
    counted = inside(geometry)
    assert np.abs(image.astype(int) - mask.astype(int))[counted].max() <= 4
    assert (mask[~counted] == IGNORE).all()


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_every_channel_is_resized_alike(channels: int) -> None:
    plane = np.random.default_rng(2).integers(0, 256, (9, 11, 1), dtype=np.uint8)
    geometry = Geometry((13, 17), 2, 3, (8, 8), (8, 8), flip=True)
    shown = view_image(np.repeat(plane, channels, axis=2), geometry)
    assert shown.shape == (8, 8, channels)
    assert np.array_equal(shown, np.repeat(view_image(plane, geometry), channels, axis=2))


def test_a_whole_unscaled_view_is_the_image(noise: npt.NDArray[np.uint8]) -> None:
    assert np.array_equal(view_image(noise, GEOMETRIES[0]), noise)
    assert np.array_equal(view_mask(noise[..., 0], GEOMETRIES[0]), noise[..., 0])


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_a_flip_mirrors_image_and_mask(geometry: Geometry, noise: npt.NDArray[np.uint8]) -> None:
    other = replace(geometry, flip=not geometry.flip)
    assert np.array_equal(view_image(noise, other), view_image(noise, geometry)[:, ::-1])
    assert np.array_equal(view_mask(noise[..., 1], other), view_mask(noise[..., 1], geometry)[:, ::-1])


def test_padding_lies_on_both_sides_and_does_not_count() -> None:
    geometry = Geometry(scaled=(2, 3), top=0, left=0, shown=(2, 3), crop=(5, 4), flip=False)
    counted = inside(geometry)
    assert counted.shape == (5, 4)
    assert np.argwhere(counted).tolist() == [[r, c] for r in (1, 2) for c in (0, 1, 2)]
    padded = pad(np.ones((2, 2, 3), np.float32), geometry, 0.0)
    assert np.array_equal(padded, np.stack([counted, counted]).astype(np.float32))
    assert np.array_equal(pad_mask(np.zeros((2, 3), np.uint8), geometry), np.where(counted, 0, IGNORE))


def test_scales_come_from_the_set() -> None:
    drawn = [draw_geometry(generator(k), (40, 60), (16, 16), (0.5, 1.5)) for k in range(40)]
    assert {geometry.scaled for geometry in drawn} == {(20, 30), (60, 90)}


def test_scales_come_from_the_range_between() -> None:
    drawn = [draw_geometry(generator(k), (40, 60), (16, 16), (0.5, 1.0, 1.5), between=True) for k in range(200)]
    heights = [geometry.scaled[0] for geometry in drawn]
    assert 20 <= min(heights) <= 22
    assert 57 <= max(heights) <= 60
    assert len(set(heights)) > 30
    assert all(abs(h * 60 - w * 40) <= 60 for h, w in (geometry.scaled for geometry in drawn)), "the shape is kept"


def test_every_place_of_the_crop_is_drawn() -> None:
    drawn = [draw_geometry(generator(k), (6, 5), (4, 4), (1.0,)) for k in range(100)]
    assert {geometry.top for geometry in drawn} == {0, 1, 2}
    assert {geometry.left for geometry in drawn} == {0, 1}


def test_half_of_the_views_are_flipped_or_none() -> None:
    flips = [draw_geometry(generator(k), (6, 5), (4, 4), (1.0,)).flip for k in range(200)]
    assert 70 < sum(flips) < 130
    assert not any(draw_geometry(generator(k), (6, 5), (4, 4), (1.0,), flip=False).flip for k in range(20))


def test_an_image_smaller_than_the_crop_is_shown_whole() -> None:
    geometry = draw_geometry(generator(0), (1, 30), (16, 16), (0.5,))
    assert geometry.scaled == (1, 15)
    assert (geometry.top, geometry.left, geometry.shown) == (0, 0, (1, 15))


@pytest.mark.parametrize(("dtype", "full"), [(np.uint8, 255.0), (np.uint16, 65535.0), (np.float32, 1.0)])
def test_white_is_one(dtype: npt.DTypeLike, full: float) -> None:
    image = np.array([[[full, 0.0]]]).astype(dtype)
    assert full_of(image) == full
    assert unit(image, full_of(image)).dtype == np.float32
    assert unit(image, full_of(image)).tolist() == [[[1.0, 0.0]]]


@pytest.mark.parametrize(("dtype", "full"), [(np.uint8, 4.0), (np.uint16, 4.0), (np.float32, 1.0)])
def test_each_channel_is_standardized_and_put_first_and_padding_is_the_mean(dtype: npt.DTypeLike, full: float) -> None:
    image = (full * np.array([[[0.5, 0.25], [0.75, 0.0], [0.5, 0.5]]])).astype(dtype)
    geometry = Geometry(scaled=(1, 3), top=0, left=0, shown=(1, 3), crop=(2, 4), flip=False)
    standard = standardize(image, full, (0.5, 0.25), (0.25, 0.125), geometry)
    assert standard.dtype == np.float32
    assert standard.flags.c_contiguous
    assert standard.tolist() == [[[0, 1, 0, 0], [0, 0, 0, 0]], [[0, -2, 2, 0], [0, 0, 0, 0]]]


def opencv_rows(
    before: int, after: int, first: int, count: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Of one axis: bilinear weights (count, before), and the nearest places, by OpenCV's rules."""
    weights = np.zeros((count, before))
    nearest = np.zeros(count, np.int64)
    for k in range(count):
        place = min(max((first + k + 0.5) * before / after - 0.5, 0.0), before - 1.0)
        low = int(place)
        weights[k, low] += 1 - (place - low)
        weights[k, min(low + 1, before - 1)] += place - low
        nearest[k] = min(int((first + k) * before / after), before - 1)
    return weights, nearest


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_published_views_are_resized_as_the_authors_did(noise: npt.NDArray[np.uint8], geometry: Geometry) -> None:
    rows, near_rows = opencv_rows(31, geometry.scaled[0], geometry.top, geometry.shown[0])
    columns, near_columns = opencv_rows(47, geometry.scaled[1], geometry.left, geometry.shown[1])
    turn = slice(None, None, -1 if geometry.flip else 1)
    image = np.einsum("ah,bw,hwc->abc", rows, columns, noise.astype(np.float64))[:, turn]
    mask = noise[..., 0][near_rows][:, near_columns][:, turn]

    exact = view_image(noise.astype(np.float32), geometry, published=True)
    np.testing.assert_allclose(exact, image, atol=1e-2)
    rounded = view_image(noise, geometry, published=True)
    assert rounded.dtype == np.uint8
    np.testing.assert_allclose(rounded, image, atol=0.51)
    np.testing.assert_array_equal(view_mask(noise[..., 0], geometry, published=True), mask)


def test_published_views_are_not_smoothed_where_they_shrink(noise: npt.NDArray[np.uint8]) -> None:
    half = Geometry(scaled=(15, 23), top=0, left=0, shown=(15, 23), crop=(15, 23), flip=False)
    assert view_image(noise, half, published=True).std() > 1.2 * view_image(noise, half).std()
