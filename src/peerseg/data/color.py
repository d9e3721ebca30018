"""Strong views: the same picture in other light, gray or out of focus. Every step is valid for any number of channels."""

import math
from dataclasses import asdict, dataclass

import numpy as np

from peerseg.data.views import Floats
from peerseg.errors import check_between

NARROWEST = 0.1  # pixels: a blur that is none


@dataclass(frozen=True)
class Jitter:
    """How far a strong view may stray.

    Args:
        chance: Of changing the light at all.
        brightness: Largest relative change of all channels together.
        contrast: Largest relative change of the distance from the mean.
        saturation: Largest relative change of the distance from gray.
        cast: Largest relative change of each channel by itself (what a turn of the hue is to three channels).
        gray: Chance of losing all color.
        blur: Chance of a blur.
        sigma: Largest width of the blur in pixels.
    """

    chance: float = 0.8
    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4
    cast: float = 0.15
    gray: float = 0.2
    blur: float = 0.5
    sigma: float = 1.5

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            most = 1 if name in ("chance", "gray", "blur") else math.inf
            check_between(f"loader.jitter.{name}", value, NARROWEST if name == "sigma" else 0, most)


def strong_color(image: Floats, jitter: Jitter, random: np.random.Generator) -> Floats:
    """Draw and apply one change of color.

    Args:
        image: (H, W, channels) in unit range.
        jitter: How far.
        random: Where the choices come from.

    Returns:
        The same shape.
    """
    light, gray, blurred = random.random(3) < (jitter.chance, jitter.gray, jitter.blur)
    if light:
        image = _relight(image, jitter, random)
    if gray:
        image = np.broadcast_to(image.mean(axis=2, keepdims=True), image.shape)
    if blurred:
        image = blur(image, random.uniform(NARROWEST, jitter.sigma))
    return image


def _relight(image: Floats, jitter: Jitter, random: np.random.Generator) -> Floats:
    spread = (jitter.brightness, jitter.contrast, jitter.saturation)
    brightness, contrast, saturation = (np.float32(1 + random.uniform(-far, far)) for far in spread)
    cast = np.asarray(1 + random.uniform(-jitter.cast, jitter.cast, image.shape[2]), np.float32)
    image = image * (brightness * cast)
    image = contrast * image + (1 - contrast) * image.mean(dtype=np.float32)
    return np.asarray(saturation * image + (1 - saturation) * image.mean(axis=2, keepdims=True))


def blur(image: Floats, sigma: float) -> Floats:
    """Gaussian blur, edges repeated.

    Args:
        image: (H, W, channels).
        sigma: Width in pixels.

    Returns:
        The same shape.
    """
    reach = max(1, int(np.ceil(2.5 * sigma)))
    offsets = np.arange(-reach, reach + 1)
    weights = np.exp(-0.5 * (offsets / sigma) ** 2)
    weights = (weights / weights.sum()).astype(np.float32)
    for axis in (0, 1):
        edges = [(reach, reach) if k == axis else (0, 0) for k in range(3)]
        padded = np.pad(image, edges, mode="edge")
        length = image.shape[axis]
        shifted = (np.take(padded, range(k, k + length), axis) for k in range(2 * reach + 1))
        image = np.sum([weight * part for weight, part in zip(weights, shifted, strict=True)], axis=0, dtype=np.float32)
    return image
