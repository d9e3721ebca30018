"""Time of a loss, of steps and of votes beside the naive ones, as ratios of runs made in turn."""

from collections.abc import Callable

import numpy as np
import torch

from benchmarks import naive
from benchmarks.measuring import Sample, interleaved
from benchmarks.scenes import CLOCK, Scene, clear, learn_step, lite, paper
from peerseg.data.labels import Mask
from peerseg.inference.evaluate import confusion
from peerseg.inference.predict import evaluating, gather
from peerseg.inference.voting import answer, disagreement
from peerseg.methods import NCPS, Method, NCPSCutMix, cross_supervision, hard_labels
from peerseg.methods.passes import label, learn
from peerseg.networks import SegmentationNetwork
from peerseg.placement import OneProcess
from peerseg.placement.single import Precision
from peerseg.report.table import Table
from peerseg.training.optimize import Optimization

REPETITIONS = 7
N = 3

Row = tuple[str, str, str, str]


def table() -> Table:
    """Every ratio with its target."""
    rows = [*loss_rows(), *paper_rows(), *preset_rows(), *vote_rows()]
    return Table(("what", "beside", "ratio (least to greatest)", "target"), tuple(rows))


def loss_rows() -> list[Row]:
    """All losses of a step, labels included, forward and backward: 2 images of 256 pixels, 21 classes."""
    rows = []
    for count, target in ((3, "0.50"), (8, "0.20")):
        random = torch.Generator().manual_seed(0)
        scores = [torch.randn(2, 21, 256, 256, generator=random).requires_grad_() for _ in range(count)]

        def published(scores: list[torch.Tensor] = scores) -> None:
            naive.pair_loss(scores, scores).backward()  # type: ignore[no-untyped-call]

        def ours(scores: list[torch.Tensor] = scores) -> None:
            answers = torch.stack([hard_labels(logits) for logits in scores])
            counted = torch.ones_like(answers[0], dtype=torch.bool)
            for i, logits in enumerate(scores):
                peers = [j for j in range(len(scores)) if j != i]
                cross_supervision(logits, answers[peers], counted).backward()  # type: ignore[no-untyped-call]

        taken = interleaved({"ours": ours, "naive": published}, REPETITIONS)
        rows.append((f"losses and labels, n = {count}", "pair loop", str(taken["ours"].over(taken["naive"])), target))
    return rows


def paper_rows() -> list[Row]:
    """The paper's network: the published step beside its bare passes, and lean beside naive plus label passes."""
    scene = paper()
    batch = scene.views()
    assert batch.partner is not None, "asked for"
    placement = OneProcess(N, "cpu", "float32", channels_last=False)
    exact = NCPSCutMix(scene.networks(N), ramp=0, labels="train", counted="all", partner="own", strong=False)
    lean, networks = NCPS(scene.networks(N), ramp=0, labels="train", counted="all"), scene.networks(N)
    optimization = Optimization(exact.parameter_groups())
    slope = torch.randn(scene.batch, scene.classes, scene.side, scene.side)

    def step() -> None:
        learn_step(exact, batch, placement)
        optimization.step(CLOCK)

    def bare() -> None:
        for j, f in enumerate(networks):
            for view in ("unlabeled", "partner"):
                label(f, batch.images, CLOCK, j, view, mode="train")
            for view in ("mixed", "labeled"):
                learn(f, batch.images, CLOCK, j, view).backward(slope)  # type: ignore[no-untyped-call]
        clear(networks)

    def plain() -> None:
        clear(networks)
        naive.plain_loss(networks, batch, CLOCK).backward()  # type: ignore[no-untyped-call]

    def labels() -> None:
        for j, f in enumerate(networks[:-1]):
            for view in ("labeled", "unlabeled"):
                label(f, batch.images, CLOCK, j, view, mode="train", track=False)

    def ours() -> None:
        clear(lean)
        learn_step(lean, batch, placement)

    taken = interleaved({"step": step, "bare": bare, "plain": plain, "labels": labels, "lean": ours}, REPETITIONS)
    both = Sample(tuple(a + b for a, b in zip(taken["plain"].values, taken["labels"].values, strict=True)))
    return [
        (
            "published CutMix step with optimizer, ResNet-50",
            "bare passes",
            str(taken["step"].over(taken["bare"])),
            "1.10",
        ),
        ("lean plain step, ResNet-50", "naive and label passes", str(taken["lean"].over(both)), "1.00"),
    ]


def preset_rows() -> list[Row]:
    """The recipe ``folder``: its network and method, plain and as fast as this processor allows."""
    scene = lite()
    networks = scene.networks(N)
    batch = scene.views()
    assert batch.partner is not None, "asked for"

    def published() -> None:
        clear(networks)
        naive.cutmix_loss(networks, batch, batch.partner, CLOCK).backward()  # type: ignore

    ways = {
        "float32": (preset_step("float32", False), "0.90"),
        "float32, channels last": (preset_step("float32", True), "-"),
        "bfloat16": (preset_step("bfloat16", False), "-"),
        "bfloat16, channels last": (preset_step("bfloat16", True), "0.65"),
    }
    taken = interleaved({"naive": published} | {way: step for way, (step, _) in ways.items()}, REPETITIONS)
    return [
        (f"default preset, {way}", "naive CutMix, float32", str(taken[way].over(taken["naive"])), target)
        for way, (_, target) in ways.items()
    ]


def preset_step(precision: Precision, channels_last: bool) -> Callable[[], None]:
    """A step of the recipe ``folder``.

    Args:
        precision: Of its convolutions.
        channels_last: How its memory lies.

    Returns:
        The step.
    """
    scene = lite()
    method: Method = NCPSCutMix(scene.networks(N))
    placement = OneProcess(N, "cpu", precision, channels_last)
    placement.place(method)
    moved = placement.move(scene.views(partner=False))

    def step() -> None:
        clear(method)
        learn_step(method, moved, placement)

    return step


def vote_rows() -> list[Row]:
    """All votes of an image, its confusion matrices and disagreement, beside n forward passes."""
    rows = []
    for scene, target in ((paper(side=257), "1.10"), (lite(), "-")):
        networks = scene.networks(N)
        image = np.random.default_rng(0).integers(0, 256, (scene.side, scene.side, 3), dtype=np.uint8)
        truth = np.random.default_rng(1).integers(0, scene.classes, image.shape[:2], dtype=np.uint8)
        taken = interleaved(
            {"votes": lambda n=networks, i=image, t=truth, s=scene: _votes(n, i, t, s),  # type: ignore[misc]
             "passes": lambda n=networks, i=image: _forward(n, i)},  # type: ignore[misc]
            REPETITIONS,
        )  # fmt: skip
        ratio = str(taken["votes"].over(taken["passes"]))
        rows.append(
            (f"all votes and their scores, {scene.name}, {scene.side} px", f"{N} forward passes", ratio, target)
        )
    return rows


def _votes(networks: list[SegmentationNetwork], image: Mask, truth: Mask, scene: Scene) -> None:
    evidence = gather(networks, image)
    for rule in ("single", "net2", "net3", "mc", "sv", "hv"):
        confusion(truth, answer(evidence, rule)[0].numpy(), scene.classes)
    disagreement(evidence).sum()


@torch.no_grad()
def _forward(networks: list[SegmentationNetwork], image: Mask) -> None:
    x = torch.from_numpy(image).permute(2, 0, 1)[None].float() / 255
    with evaluating(networks):
        for f in networks:
            f(x)
