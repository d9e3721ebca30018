"""How CCT disturbs a feature before an auxiliary classifier sees it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from peerseg.data.mixing import draw_classes

ERASED = 0.4  # of either side of an object's box
ATTENDED = (0.7, 0.9)  # of the greatest attention: above a share drawn between, features are dropped
NOISE = 0.3
RADIUS, PROBE = 2.0, 0.1  # of an adversarial disturbance, and of the step that finds its direction


@dataclass(frozen=True)
class Seen:
    """A feature, and what is known of it.

    Args:
        feature: (B, D, h, w).
        labels: (B, h, w) uint8, what the main classifier answers there.
        target: (B, C, H, W), its probabilities.
        background: The class that is no object, or None.
    """

    feature: Tensor
    labels: Tensor
    target: Tensor
    background: int | None

    def objects(self, random: torch.Generator) -> Tensor:
        """(B, h, w) bool, where there is an object.

        Args:
            random: On the CPU.
        """
        # Reference: class 0 is the background there; without one, half of the classes are drawn, as ClassMix does.
        if self.background is not None:
            return self.labels != self.background
        return draw_classes(self.labels, self.target.shape[1], random)


Classify = Callable[[Tensor], Tensor]
Disturb = Callable[[Seen, Classify, torch.Generator], Tensor]


def drop_channels(seen: Seen, _: Classify, random: torch.Generator) -> Tensor:
    """Drop half of the channels of each image; the others count twice.

    Args:
        seen: The feature.
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    kept = torch.rand(*seen.feature.shape[:2], 1, 1, generator=random) >= 0.5
    return seen.feature * (2 * kept.to(seen.feature))


def add_noise(seen: Seen, _: Classify, random: torch.Generator) -> Tensor:
    """``h (1 + n)``, n even between -0.3 and 0.3, the same for every image.

    Args:
        seen: The feature.
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    noise = NOISE * (2 * torch.rand(seen.feature.shape[1:], generator=random) - 1)
    return seen.feature * (1 + noise.to(seen.feature))


def drop_attended(seen: Seen, _: Classify, random: torch.Generator) -> Tensor:
    """Drop places where the mean over the channels is greatest.

    Args:
        seen: The feature.
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    least, most = ATTENDED
    attention = seen.feature.detach().mean(dim=1, keepdim=True)
    limit = attention.amax(dim=(2, 3), keepdim=True) * (least + (most - least) * torch.rand(1, generator=random).item())
    return seen.feature * (attention < limit)


def hide_context(seen: Seen, _: Classify, random: torch.Generator) -> Tensor:
    """Hide everything but the objects.

    Args:
        seen: The feature.
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    return seen.feature * seen.objects(random)[:, None]


def hide_objects(seen: Seen, _: Classify, random: torch.Generator) -> Tensor:
    """Hide the objects.

    Args:
        seen: The feature.
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    return seen.feature * ~seen.objects(random)[:, None]


def cut_out(seen: Seen, _: Classify, random: torch.Generator) -> Tensor:
    """Cut a window out of the box around each class that is an object.

    Args:
        seen: The feature.
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    # Reference: a box around every contour there, found on the host; around every class here.
    objects, labels = seen.objects(random).cpu(), seen.labels.cpu()
    kept = torch.ones_like(objects)
    for b in range(len(labels)):
        for name in labels[b][objects[b]].bincount().nonzero().flatten():
            kept[(b, *_window(labels[b] == name, random))] = False
    return seen.feature * kept[:, None].to(seen.feature.device)


def _window(shape: Tensor, random: torch.Generator) -> tuple[slice, slice]:
    slices = []
    for axis in (1, 0):
        places = shape.any(dim=axis).nonzero().flatten()
        first, length = int(places[0]), int(places[-1] - places[0]) + 1
        side = max(1, int(ERASED * length))
        start = first + int(torch.randint(length - side + 1, (1,), generator=random))
        slices.append(slice(start, start + side))
    return slices[0], slices[1]


def go_astray(seen: Seen, classify: Classify, random: torch.Generator) -> Tensor:
    """Go towards where the classifier's answer changes most (virtual adversarial training).

    Args:
        seen: The feature.
        classify: Takes a feature to logits (B, C, H, W).
        random: On the CPU.

    Returns:
        (B, D, h, w).
    """
    feature = seen.feature.to(
        torch.promote_types(seen.feature.dtype, torch.float32)
    )  # the steps are too small for fewer bits
    direction = _unit(torch.randn(feature.shape, generator=random).to(feature)).requires_grad_()
    with torch.autocast(feature.device.type, enabled=False):
        answer = classify(feature.detach() + PROBE * direction)
        distance = F.kl_div(torch.log_softmax(answer, dim=1), seen.target.to(answer), reduction="batchmean")
        # Not `backward`, which would leave gradients in the classifier.
        (steepest,) = torch.autograd.grad(distance, direction)
    return feature + RADIUS * _unit(steepest)


def _unit(direction: Tensor) -> Tensor:
    length = direction.flatten(1).square().sum(dim=1).sqrt().clamp(min=1e-12)
    return direction / length[:, None, None, None]


KINDS: Mapping[str, Disturb] = {
    "dropout": drop_channels,
    "cutout": cut_out,
    "context": hide_context,
    "object": hide_objects,
    "drop": drop_attended,
    "noise": add_noise,
}
