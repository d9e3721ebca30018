"""What every network promises, whichever library it comes from."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from peerseg.networks import SegmentationNetwork, SmallNetwork, deeplabv3plus, library

# Every architecture of the library with the smallest encoder and image it takes.
LIBRARY = {
    "unet": ("resnet18", 64),
    "unetplusplus": ("resnet18", 64),
    "manet": ("resnet18", 64),
    "linknet": ("resnet18", 64),
    "fpn": ("resnet18", 64),
    "pspnet": ("resnet18", 64),
    "deeplabv3": ("resnet18", 64),
    "deeplabv3plus": ("efficientnet_lite0", 64),
    "pan": ("resnet18", 256),
    "upernet": ("resnet18", 64),
    "segformer": ("resnet18", 64),
    "dpt": ("vit_tiny_patch16_224", 64),
}


def _library(architecture: str) -> Callable[..., SegmentationNetwork]:
    def make(classes: int, **options: Any) -> SegmentationNetwork:
        return library(architecture, LIBRARY[architecture][0], classes, weights=None, **options)

    return make


def _paper(classes: int, **options: Any) -> SegmentationNetwork:
    return deeplabv3plus("resnet18", classes, weights=None, **options)


NETWORKS: dict[str, tuple[Callable[..., SegmentationNetwork], int]] = {
    "small": (SmallNetwork, 16),
    "paper": (_paper, 64),
}
NETWORKS |= {name: (_library(name), size) for name, (_, size) in LIBRARY.items()}


def test_every_architecture_of_the_library_is_covered() -> None:
    import segmentation_models_pytorch as smp

    assert set(LIBRARY) == set(smp.MODEL_ARCHITECTURES_MAPPING)


@pytest.mark.parametrize("name", NETWORKS)
def test_logits_are_classified_decoded_features_at_full_resolution(name: str) -> None:
    make, size = NETWORKS[name]
    network = make(5).eval()
    assert size % network.stride == 0
    x = torch.randn(2, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        logits = network(x)
        feature = network.decode(network.encode(x))
        assert torch.equal(network.classify(feature, (size, size)), logits)
        assert network.classify(feature, (size + 3, size - 1)).shape == (2, 5, size + 3, size - 1)
    assert logits.shape == (2, 5, size, size)


@pytest.mark.parametrize("name", ["small", "paper", "deeplabv3plus"])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_any_number_of_channels(name: str, channels: int) -> None:
    make, _ = NETWORKS[name]
    network = make(2, channels=channels).eval()
    assert network.mean.shape == network.std.shape == (channels,)
    with torch.no_grad():
        assert network(torch.zeros(1, channels, 64, 64)).shape == (1, 2, 64, 64)


@pytest.mark.parametrize("name", ["small", "paper", "unet"])
def test_colors_are_saved_with_the_weights(name: str) -> None:
    make, _ = NETWORKS[name]
    network = make(2, mean=(0.1, 0.2, 0.3), std=(0.4, 0.5, 0.6))
    other = make(2)
    other.load_state_dict(network.state_dict())
    assert other.mean.tolist() == pytest.approx([0.1, 0.2, 0.3])
    assert other.std.tolist() == pytest.approx([0.4, 0.5, 0.6])
