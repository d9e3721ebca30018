"""The published network as plain arithmetic on a state dict in the authors' naming: what our DeepLabV3+ is held against."""

from collections.abc import Mapping

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCKS = {"resnet50s": (3, 4, 6, 3), "resnet101s": (3, 4, 23, 3)}
GRID = (2, 4, 8)
RATES = (6, 12, 18)

State = Mapping[str, Tensor]


def published_logits(state: State, x: Tensor, blocks: tuple[int, ...], *, training: bool, prefix: str = "") -> Tensor:
    """Logits (B, C, H, W); in training the running statistics in ``state`` are updated as a pass would."""

    def conv(name: str, y: Tensor, stride: int = 1, dilation: int = 1) -> Tensor:
        weight = state[f"{prefix}{name}.weight"]
        padding = dilation * (weight.shape[2] // 2)
        return F.conv2d(y, weight, state.get(f"{prefix}{name}.bias"), stride, padding, dilation)

    def norm(name: str, y: Tensor) -> Tensor:
        mean, var = (state[f"{prefix}{name}.running_{what}"] for what in ("mean", "var"))
        weight, bias = (state[f"{prefix}{name}.{what}"] for what in ("weight", "bias"))
        return F.batch_norm(y, mean, var, weight, bias, training, 0.1, 1e-5)

    def bottleneck(name: str, y: Tensor, stride: int, dilation: int) -> Tensor:
        z = F.relu(norm(f"{name}.bn1", conv(f"{name}.conv1", y)))
        z = F.relu(norm(f"{name}.bn2", conv(f"{name}.conv2", z, stride, dilation)))
        z = norm(f"{name}.bn3", conv(f"{name}.conv3", z))
        if f"{prefix}{name}.downsample.0.weight" in state:
            y = norm(f"{name}.downsample.1", conv(f"{name}.downsample.0", y, stride))
        return F.relu(z + y)

    def up(y: Tensor, like: Tensor) -> Tensor:
        return F.interpolate(y, size=like.shape[2:], mode="bilinear", align_corners=True)

    y = F.relu(norm("backbone.conv1.1", conv("backbone.conv1.0", x, 2)))
    y = F.relu(norm("backbone.conv1.4", conv("backbone.conv1.3", y)))
    y = F.relu(norm("backbone.bn1", conv("backbone.conv1.6", y)))
    y = F.max_pool2d(y, 3, 2, 1)
    stages = []
    for stage, count in enumerate(blocks, 1):
        for k in range(count):
            stride = 2 if k == 0 and stage in (2, 3) else 1
            y = bottleneck(f"backbone.layer{stage}.{k}", y, stride, GRID[k] if stage == 4 else 1)
        stages.append(y)
    fine, coarse = stages[0], stages[3]

    views = [conv("head.aspp.map_convs.0", coarse)]
    views += [conv(f"head.aspp.map_convs.{k}", coarse, 1, rate) for k, rate in enumerate(RATES, 1)]
    a = conv("head.aspp.red_conv", F.leaky_relu(norm("head.aspp.map_bn", torch.cat(views, 1)), 0.01))
    pooled = conv("head.aspp.global_pooling_conv", F.adaptive_avg_pool2d(coarse, 1))
    p = conv("head.aspp.pool_red_conv", F.leaky_relu(norm("head.aspp.global_pooling_bn", pooled), 0.01))
    seen = F.leaky_relu(norm("head.aspp.red_bn", a + p), 0.01)

    low = F.relu(norm("head.reduce.1", conv("head.reduce.0", fine)))
    joined = torch.cat([up(seen, low), low], 1)
    joined = F.relu(norm("head.last_conv.1", conv("head.last_conv.0", joined)))
    joined = F.relu(norm("head.last_conv.4", conv("head.last_conv.3", joined)))
    return up(conv("classifier", joined), x)
