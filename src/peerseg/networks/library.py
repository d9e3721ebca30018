"""Any architecture of segmentation_models_pytorch on any of its or timm's encoders, behind our interface."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from peerseg.errors import PeersegError, nearest
from peerseg.networks.base import SegmentationNetwork
from peerseg.networks.encoders import colors_of, defaults, start_from, unreachable
from peerseg.networks.resizing import resize
from peerseg.networks.weights import carried_file, is_file


class LibraryNetwork(SegmentationNetwork):
    """A model of segmentation_models_pytorch.

    Args:
        model: The model.
        mean: Of each channel.
        std: Of each channel.
    """

    def __init__(self, model: Any, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(int(model.encoder.output_stride), mean, std)
        self.model = model

    def encode(self, x: Tensor) -> list[Tensor]:
        """The encoder's features; see ``SegmentationNetwork.encode``."""
        features = self.model.encoder(x)
        if isinstance(features, tuple):  # a vision transformer's: feature maps, and tokens that belong to no place
            maps, tokens = features
            return [*maps, *(token for token in tokens if token is not None)]
        return list(features)

    def decode(self, features: list[Tensor]) -> Tensor:
        """The decoder's feature; see ``SegmentationNetwork.decode``."""
        tokens = [feature for feature in features if feature.ndim < 4]
        maps = [feature for feature in features if feature.ndim == 4]
        decoded: Tensor = self.model.decoder(maps, tokens) if tokens else self.model.decoder(maps)
        return decoded

    def classify(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        """The head's logits, resized where it leaves them smaller; see ``SegmentationNetwork.classify``."""
        return resize(self.model.segmentation_head(feature), size)


def library(
    architecture: str,
    encoder: str,
    classes: int,
    *,
    weights: str | None,
    channels: int = 3,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
    options: Mapping[str, Any] | None = None,
) -> LibraryNetwork:
    """Build a network of segmentation_models_pytorch.

    Args:
        architecture: Such as "DeepLabV3Plus", "Unet" or "FPN"; upper and lower case are alike.
        encoder: Such as "resnet50", "efficientnet_lite0" or any feature extractor of timm.
        classes: How many.
        weights: Of the encoder: "imagenet", another set of the hub by name, a file, or None for a random start.
        channels: Of the images; a first convolution made for three is inflated.
        mean: Of each channel; the encoder's own where None.
        std: Of each channel; the encoder's own where None.
        options: More keywords of the architecture, such as ``{"decoder_channels": 128}``.

    Returns:
        The network.
    """
    import segmentation_models_pytorch as smp

    if architecture.lower() not in smp.MODEL_ARCHITECTURES_MAPPING:
        raise PeersegError(
            f"network.architecture is {architecture!r}; {nearest(architecture.lower(), smp.MODEL_ARCHITECTURES_MAPPING)}"
        )
    name = _encoder_name(encoder)
    timm_name = name.removeprefix("tu-") if name.startswith("tu-") else None
    carried = carried_file(timm_name) if timm_name and weights == "imagenet" else None
    extra = (defaults(timm_name) if timm_name else {}) | dict(options or {})
    if architecture.lower() == "dpt":
        extra.setdefault("dynamic_img_size", True)  # so that crops and whole images need not have one size
    hub = None if carried or is_file(weights) else weights
    model = _create(architecture, name, hub=hub, channels=channels, classes=classes, options=extra)
    start_from(model.encoder.model if timm_name else model.encoder, carried, weights)
    own_mean, own_std = colors_of(timm_name, channels, carried)
    return LibraryNetwork(model, mean or own_mean, std or own_std)


def _create(
    architecture: str, encoder: str, *, hub: str | None, channels: int, classes: int, options: Mapping[str, Any]
) -> Any:
    import segmentation_models_pytorch as smp

    if encoder.startswith("tu-") and hub not in (None, "imagenet"):
        raise PeersegError(
            f"network.weights is {hub!r}, expected 'imagenet', a file or null for this encoder; timm's other sets are encoder "
            "names with a dot, such as 'resnet50.a1_in1k'"
        )
    try:
        return smp.create_model(architecture, encoder, hub, channels, classes, **options)
    except OSError as error:
        raise unreachable(encoder, hub) from error
    except (KeyError, TypeError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise PeersegError(
            f"{architecture!r} on {encoder!r} cannot be built ({reason}): choose another pair"
        ) from error


def _encoder_name(encoder: str) -> str:
    """The name under which segmentation_models_pytorch knows an encoder: its own, or timm's with a prefix."""
    import segmentation_models_pytorch as smp
    import timm

    if encoder in smp.encoders.encoders or encoder.startswith("tu-"):
        return encoder
    if encoder.split(".", maxsplit=1)[0] in timm.list_models():
        return f"tu-{encoder}"
    known = [*smp.encoders.encoders, *timm.list_models()]
    raise PeersegError(f"network.encoder is {encoder!r}, which neither library knows; {_hint(encoder, known)}")


def _hint(encoder: str, known: Sequence[str]) -> str:
    hint = nearest(encoder, known)
    return hint if hint.startswith("did") else "`timm.list_models()` lists a thousand more"
