"""Gradients of our steps beside those of the naive ones, in double precision."""

import torch
from torch import Tensor

from benchmarks import naive
from benchmarks.scenes import CLOCK, Scene, learn_step
from peerseg.methods import NCPS, Method, NCPSCutMix, hard_labels
from peerseg.methods.passes import learn
from peerseg.networks import SegmentationNetwork, SmallNetwork, deeplabv3plus
from peerseg.placement import OneProcess
from peerseg.report.table import Table

COUNTS = (2, 3, 5)
SMALL = Scene("small, with dropout", lambda: SmallNetwork(5, width=6, dropout=0.3), 5, 32, 3, torch.float64)
PAPER = Scene("resnet50s", lambda: deeplabv3plus("resnet50s", 21, weights=None), 21, 65, 3, torch.float64)


def compare(scene: Scene, count: int, algorithm: str) -> tuple[bool, float, bool]:
    """Hold one step against the naive one.

    Args:
        scene: In double precision.
        count: n.
        algorithm: "plain" or "CutMix".

    Returns:
        Whether all label maps are equal, ``max |g - naive| / max |naive|`` over all parameters, and whether all running
        statistics are equal.
    """
    batch, own, other = scene.views(), scene.networks(count), scene.networks(count)
    assert batch.partner is not None, "asked for"
    labels = [_labels(networks, batch.images) for networks in (own, other)]
    if algorithm == "plain":
        method: Method = NCPS(own, ramp=0, labels="train", counted="all")
        naive.plain_loss(other, batch, CLOCK).backward()  # type: ignore[no-untyped-call]
    else:
        method = NCPSCutMix(own, ramp=0, labels="train", counted="all", partner="own", strong=False)
        naive.cutmix_loss(other, batch, batch.partner, CLOCK).backward()  # type: ignore[no-untyped-call]
    learn_step(method, batch, OneProcess(count, "cpu", "float32", channels_last=False))
    ours, theirs = _gradients(own), _gradients(other)
    apart = float((ours - theirs).abs().max() / theirs.abs().max())
    return torch.equal(*labels), apart, torch.equal(_statistics(own), _statistics(other))


def table() -> Table:
    """Both algorithms, a small network and the paper's, n = 2, 3 and 5."""
    rows = []
    for scene in (SMALL, PAPER):
        for count in COUNTS:
            for algorithm in ("plain", "CutMix"):
                labels, apart, statistics = compare(scene, count, algorithm)
                rows.append((scene.name, algorithm, str(count), _word(labels), f"{apart:.1e}", _word(statistics)))
    return Table(("network", "algorithm", "n", "labels", "gradients apart", "running statistics"), tuple(rows))


@torch.no_grad()
def _labels(networks: list[SegmentationNetwork], images: Tensor) -> Tensor:
    kept = [{name: tensor.clone() for name, tensor in f.state_dict().items()} for f in networks]
    labels = torch.stack([hard_labels(learn(f, images, CLOCK, j, "labeled")) for j, f in enumerate(networks)])
    for f, state in zip(networks, kept, strict=True):
        f.load_state_dict(state)
    return labels


def _gradients(networks: list[SegmentationNetwork]) -> Tensor:
    return torch.cat([p.grad.flatten() for f in networks for p in f.parameters() if p.grad is not None])


def _statistics(networks: list[SegmentationNetwork]) -> Tensor:
    return torch.cat([b.flatten() for f in networks for name, b in f.named_buffers() if "running" in name])


def _word(equal: bool) -> str:
    return "equal" if equal else "not equal"
