"""Encoders of timm: built, started from weights, and with the colors that those were trained with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from peerseg.errors import PeersegError, nearest
from peerseg.networks.weights import carried_file, fill_encoder, from_efficientnet_package, is_file, read_weights

IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
HALF = ((0.5, 0.5, 0.5), (0.5, 0.5, 0.5))  # what the carried EfficientNet-Lite weights were trained with


@dataclass(frozen=True)
class Encoder:
    """An encoder, ready to join a network.

    Args:
        body: The module.
        places: Which of its features have the strides that were asked for.
        widths: Channels of those.
        mean: Of each channel of its images.
        std: Of each channel.
    """

    body: nn.Module
    places: tuple[int, ...]
    widths: tuple[int, ...]
    mean: Sequence[float]
    std: Sequence[float]


def create_encoder(name: str, weights: str | None, *, channels: int, strides: Sequence[int]) -> Encoder:
    """Build an encoder of timm whose features reach the coarsest of some strides and go no further.

    Args:
        name: As timm calls it.
        weights: "imagenet", a file, or None for a random start.
        channels: Of the images.
        strides: Of the features that are needed, finest first.

    Returns:
        The encoder.
    """
    check_known(name)
    carried = carried_file(name) if weights == "imagenet" else None
    if weights not in (None, "imagenet") and not is_file(weights):
        raise PeersegError(f"network.weights is {weights!r}, expected 'imagenet', a file or null")
    body = _create(name, weights == "imagenet" and carried is None, channels, max(strides))
    reductions: list[int] = body.feature_info.reduction()
    if any(stride not in reductions for stride in strides):
        raise PeersegError(
            f"network.encoder is {name!r}, whose features have the strides {reductions}, expected {list(strides)} among them: "
            "take a ResNet, a MobileNet or an EfficientNet"
        )
    # Of two features with the coarsest stride, the deeper one.
    places = tuple(len(reductions) - 1 - reductions[::-1].index(stride) for stride in strides)
    start_from(body, carried, weights)
    widths: list[int] = body.feature_info.channels()
    return Encoder(body, places, tuple(widths[place] for place in places), *colors_of(name, channels, carried))


def check_known(name: str) -> None:
    """Refuse what timm does not know.

    Args:
        name: Of an encoder.
    """
    import timm

    if name.split(".", maxsplit=1)[0] not in timm.list_models():
        hint = nearest(name, timm.list_models())
        hint = hint if hint.startswith("did") else "`timm.list_models()` lists a thousand"
        raise PeersegError(f"network.encoder is {name!r}, which timm does not know; {hint}")


def _create(name: str, pretrained: bool, channels: int, stride: int) -> Any:
    import timm

    try:
        body = timm.create_model(
            name, pretrained=pretrained, features_only=True, output_stride=stride, in_chans=channels, **defaults(name)
        )
        _try_out(body, channels)
        return body
    except OSError as error:
        raise unreachable(name, "imagenet") from error
    except (TypeError, ValueError, RuntimeError, NotImplementedError, AssertionError) as error:
        reason = str(error).partition("\n")[0]
        raise PeersegError(
            f"network.encoder {name!r} cannot give features of stride {stride} ({reason}): take a ResNet, a MobileNet or an "
            "EfficientNet"
        ) from error


@torch.no_grad()
def _try_out(body: Any, channels: int) -> None:
    """Some encoders promise features that they do not give, or not of images of any size."""
    side = 64
    features = body.eval()(torch.zeros(1, channels, side, side))
    body.train()
    promised = zip(body.feature_info.channels(), body.feature_info.reduction(), strict=True)
    shapes = [(1, width, side // stride, side // stride) for width, stride in promised]
    if [tuple(feature.shape) for feature in features] != shapes:
        raise ValueError("they are no maps of that many channels")


def defaults(name: str) -> dict[str, Any]:
    """What an encoder needs to be built as its weights were trained.

    Args:
        name: As timm calls it.

    Returns:
        Keywords.
    """
    # timm's own default for this name is 1e-5.
    return {"bn_eps": 1e-3} if name.startswith("efficientnet_lite") else {}


def unreachable(name: str, weights: str | None) -> PeersegError:
    """What to say where weights could not be fetched.

    Args:
        name: Of the encoder.
        weights: Which.

    Returns:
        The error.
    """
    return PeersegError(
        f"the {weights!r} weights of {name!r} could not be fetched: connect to the network, give network.weights a file, "
        "or null for a random start"
    )


def start_from(body: nn.Module, carried: Path | None, weights: str | None) -> None:
    """Fill an encoder from the package that carries its weights, or from the user's file.

    Args:
        body: Filled in place; left alone where neither is given.
        carried: The package's file.
        weights: As given by the user.
    """
    if carried is not None:
        fill_encoder(body, from_efficientnet_package(read_weights(carried), body.state_dict()), carried.name)
    elif weights is not None and is_file(weights):
        fill_encoder(body, read_weights(Path(weights)), weights)


def colors_of(name: str | None, channels: int, carried: Path | None) -> tuple[Sequence[float], Sequence[float]]:
    """The colors an encoder was trained with.

    Args:
        name: As timm calls it; None for an encoder of another library.
        channels: Of the images; only for three something is known.
        carried: The file its weights came from, if a package carries them.

    Returns:
        Mean and standard deviation of each channel.
    """
    if channels != 3:
        return (0.5,) * channels, (0.25,) * channels
    if carried is not None:
        return HALF
    if name is None:
        return IMAGENET
    import timm

    config = timm.get_pretrained_cfg(name)
    return (tuple(config.mean), tuple(config.std)) if config else IMAGENET
