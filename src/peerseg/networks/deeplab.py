"""DeepLabV3+ as the paper's authors built it: their head on an encoder of timm, whose layers keep their names.

On ``resnet50s`` and ``resnet101s`` it is the published network, weight for weight.
"""

from collections.abc import Mapping, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from peerseg.errors import PeersegError
from peerseg.networks.base import SegmentationNetwork
from peerseg.networks.encoders import Encoder, create_encoder
from peerseg.networks.resizing import resize

HIDDEN = 256  # channels of every feature in the head
REDUCED = 48  # channels of the fine feature where it joins
RATES = (6, 12, 18)  # dilation of the pyramid's convolutions
MULTI_GRID = (2, 4, 8)  # dilation of the last stage's blocks, in a ResNet
SLOPE = 0.01  # of the pyramid's leaky ReLU


class Pyramid(nn.Module):
    """Atrous spatial pyramid pooling: four views of the coarse feature, and its global mean.

    Args:
        channels: Of the coarse feature.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        dilated = (nn.Conv2d(channels, HIDDEN, 3, padding=rate, dilation=rate, bias=False) for rate in RATES)
        self.map_convs = nn.ModuleList([nn.Conv2d(channels, HIDDEN, 1, bias=False), *dilated])
        self.map_bn = nn.BatchNorm2d(4 * HIDDEN)
        self.global_pooling_conv = nn.Conv2d(channels, HIDDEN, 1, bias=False)
        self.global_pooling_bn = nn.BatchNorm2d(HIDDEN)
        self.red_conv = nn.Conv2d(4 * HIDDEN, HIDDEN, 1, bias=False)
        self.pool_red_conv = nn.Conv2d(HIDDEN, HIDDEN, 1, bias=False)
        self.red_bn = nn.BatchNorm2d(HIDDEN)

    def forward(self, coarse: Tensor) -> Tensor:
        """The mean joins by addition, after the four views were reduced.

        Args:
            coarse: (B, channels, h, w).

        Returns:
            (B, 256, h, w).
        """
        views = torch.cat([conv(coarse) for conv in self.map_convs], dim=1)
        views = self.red_conv(F.leaky_relu(self.map_bn(views), SLOPE))
        pooled = self.global_pooling_bn(self.global_pooling_conv(coarse.mean(dim=(2, 3), keepdim=True)))
        pooled = self.pool_red_conv(F.leaky_relu(pooled, SLOPE))
        return F.leaky_relu(self.red_bn(views + pooled), SLOPE)


class Head(nn.Module):
    """From a fine and a coarse feature to the one that is classified.

    Args:
        fine: Channels of the feature at stride 4.
        coarse: Channels of the feature at stride 16.
    """

    def __init__(self, fine: int, coarse: int) -> None:
        super().__init__()
        self.aspp = Pyramid(coarse)
        self.reduce = _block(fine, REDUCED, 1)
        self.last_conv = nn.Sequential(*_block(HIDDEN + REDUCED, HIDDEN, 3), *_block(HIDDEN, HIDDEN, 3))

    def forward(self, fine: Tensor, coarse: Tensor) -> Tensor:
        """Join both at the size of the fine one.

        Args:
            fine: (B, C, h, w).
            coarse: (B, C', h/4, w/4).

        Returns:
            (B, 256, h, w).
        """
        # Reference: corners are aligned, unlike in the other networks.
        seen = resize(self.aspp(coarse), (fine.shape[2], fine.shape[3]), align_corners=True)
        feature: Tensor = self.last_conv(torch.cat([seen, self.reduce(fine)], dim=1))
        return feature


class DeepLabV3Plus(SegmentationNetwork):
    """DeepLabV3+ with output stride 16. It takes images of any size.

    Args:
        encoder: Gives features at strides 4 and 16.
        classes: How many.
        mean: Of each channel.
        std: Of each channel.
    """

    def __init__(self, encoder: Encoder, classes: int, mean: Sequence[float], std: Sequence[float]) -> None:
        super().__init__(1, mean, std)
        self.backbone, self._places = encoder.body, encoder.places
        self.head = Head(*encoder.widths)
        self.classifier = nn.Conv2d(HIDDEN, classes, 1)
        for module in (*self.head.modules(), self.classifier):
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_in", nonlinearity="relu")

    def encode(self, x: Tensor) -> list[Tensor]:
        """Features at strides 4 and 16; see ``SegmentationNetwork.encode``."""
        features = self.backbone(x)
        return [features[place] for place in self._places]

    def decode(self, features: list[Tensor]) -> Tensor:
        """(B, 256, H/4, W/4); see ``SegmentationNetwork.decode``."""
        feature: Tensor = self.head(*features)
        return feature

    def classify(self, feature: Tensor, size: tuple[int, int]) -> Tensor:
        """(B, classes, H, W); see ``SegmentationNetwork.classify``."""
        return resize(self.classifier(feature), size, align_corners=True)


def deeplabv3plus(
    encoder: str,
    classes: int,
    *,
    weights: str | None,
    channels: int = 3,
    mean: Sequence[float] | None = None,
    std: Sequence[float] | None = None,
) -> DeepLabV3Plus:
    """Build the paper's network, or its head on another encoder.

    Args:
        encoder: Of timm: "resnet50s" and "resnet101s" are the paper's; "resnet18", "efficientnet_lite0" and others whose
            output stride can be 16.
        classes: How many.
        weights: Of the encoder: "imagenet", a file (timm's names, which are the authors' too), or None for a random start.
        channels: Of the images; a first convolution made for three is inflated.
        mean: Of each channel; the encoder's own where None.
        std: Of each channel; the encoder's own where None.

    Returns:
        The network.
    """
    made = create_encoder(encoder, weights, channels=channels, strides=(4, 16))
    _set_multi_grid(made.body)
    return DeepLabV3Plus(made, classes, mean or made.mean, std or made.std)


def load_reference(networks: Sequence[DeepLabV3Plus], state: Mapping[str, Tensor]) -> None:
    """Fill networks from the weights of the authors' code.

    Args:
        networks: One for each network in the weights, in order.
        state: In the authors' naming: of a single network, or of n, as ``branches.0.`` and so on. Their checkpoints hold it
            as ``model``.
    """
    if "model" in state:
        raise PeersegError("this is a whole checkpoint of the authors, expected its weights: give checkpoint['model']")
    branches = [name for name in state if name.startswith("branches.")]
    count = len({name.split(".")[1] for name in branches}) if branches else 1
    if len(networks) != count:
        raise PeersegError(
            f"the weights hold {count} networks of the authors, {len(networks)} were given: give {count} networks to fill"
        )
    own = {f"branches.{j}." if branches else "": _learned(network) for j, network in enumerate(networks)}
    _refuse_other({prefix + name: tensor for prefix, part in own.items() for name, tensor in part.items()}, state)
    for network, (prefix, names) in zip(networks, own.items(), strict=True):
        network.load_state_dict({name: state[prefix + name] for name in names}, strict=False)


def _refuse_other(own: Mapping[str, Tensor], state: Mapping[str, Tensor]) -> None:
    misfits = {
        "lack": [name for name in own if name not in state],
        "have the unknown": [name for name in state if name not in own],
        "have another shape for": [name for name in own if name in state and state[name].shape != own[name].shape],
    }
    for what, names in misfits.items():
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise PeersegError(
                f"the weights {what} {names[0]!r}{more}: expected those of the authors' network on the same encoder, with as "
                "many classes"
            )


def _learned(network: DeepLabV3Plus) -> dict[str, Tensor]:
    """What the authors' networks have too: all but the colors."""
    return {name: tensor for name, tensor in network.state_dict().items() if name not in ("mean", "std")}


def _set_multi_grid(backbone: nn.Module) -> None:
    """Dilate the 3x3 convolutions of a ResNet's last stage, block by block; timm itself dilates them all alike."""
    last = dict(backbone.named_children()).get("layer4", nn.Sequential())
    for block, rate in zip(last.children(), MULTI_GRID, strict=False):
        for module in block.modules():
            if isinstance(module, nn.Conv2d) and module.kernel_size == (3, 3):
                module.dilation = module.padding = (rate, rate)


def _block(narrow: int, wide: int, side: int) -> nn.Sequential:
    conv = nn.Conv2d(narrow, wide, side, padding=side // 2, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(wide), nn.ReLU(inplace=True))
