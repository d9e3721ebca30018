"""ReCo's regional contrast: a pixel's representation is near the mean of its class, and far from pixels of others."""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor


@dataclass(frozen=True)
class Draw:
    """How pixels are drawn.

    Args:
        queries: Of each class.
        negatives: Of other classes, for each class.
        sure: Pixels whose class is more probable than this are no queries.
        temperature: Of cosines.
    """

    queries: int = 256
    negatives: int = 512
    sure: float = 0.97
    temperature: float = 0.5


@dataclass(frozen=True)
class Pixels:
    """Pixels that count.

    Args:
        represented: (N, D).
        labels: (N,), their classes.
        probability: (N,), what the network gives those.
    """

    represented: Tensor
    labels: Tensor
    probability: Tensor


def join(first: Pixels, second: Pixels) -> Pixels:
    """Pixels of two views as those of one.

    Args:
        first: Some.
        second: More.

    Returns:
        All.
    """
    return Pixels(
        torch.cat([first.represented, second.represented]),
        torch.cat([first.labels, second.labels]),
        torch.cat([first.probability, second.probability]),
    )


def regional_contrast(pixels: Pixels, draw: Draw, random: torch.Generator) -> Tensor:
    """For each class, the cross-entropy of finding its mean among pixels of other classes; then the mean over classes.

    Args:
        pixels: Which count.
        draw: How they are drawn.
        random: On the CPU.

    Returns:
        A scalar; 0 where fewer than two classes are seen, or every pixel is sure.
    """
    labels, probability, represented = pixels.labels, pixels.probability, pixels.represented
    members = {name: (labels == name).nonzero().flatten() for name in sorted(set(labels.tolist()))}
    if len(members) < 2:
        return represented.sum() * 0
    with torch.no_grad():
        means = _unit(torch.stack([represented[places].mean(dim=0) for places in members.values()]))
    terms = []
    for k, places in enumerate(members.values()):
        hard = places[probability[places] < draw.sure]
        if not len(hard):
            continue
        # Only what is drawn needs a graph.
        queries = _unit(represented[hard[_any(len(hard), draw.queries, random)]])
        negatives = _unit(represented[_others(k, list(members.values()), means, draw, random)].detach())
        closeness = queries @ torch.cat([means[k : k + 1], negatives]).T / draw.temperature
        terms.append(-torch.log_softmax(closeness, dim=1)[:, 0].mean())
    return torch.stack(terms).mean() if terms else represented.sum() * 0


def _unit(represented: Tensor) -> Tensor:
    return F.normalize(represented.to(torch.promote_types(represented.dtype, torch.float32)), dim=1)


def _others(k: int, members: list[Tensor], means: Tensor, draw: Draw, random: torch.Generator) -> Tensor:
    """Pixels of other classes: of those whose mean is near more often."""
    # Reference: drawn anew for each query there; once for all queries of a class here.
    near = (means[k] @ means.T / draw.temperature).softmax(dim=0).cpu()
    near[k] = 0
    chosen = torch.multinomial(near, draw.negatives, replacement=True, generator=random)
    lengths = torch.tensor([len(places) for places in members])
    within = (torch.rand(draw.negatives, generator=random) * lengths[chosen]).long()
    return torch.cat(members)[(lengths.cumsum(0) - lengths)[chosen] + within]


def _any(of: int, count: int, random: torch.Generator) -> Tensor:
    return torch.randint(of, (count,), generator=random)
