"""Memory of one step: bytes that graphs hold at their peak, and how far resident memory grows."""

import multiprocessing
from collections.abc import Callable

from benchmarks import naive
from benchmarks.measuring import counting_saved, resident_growth
from benchmarks.scenes import CLOCK, Scene, learn_step, paper
from peerseg.methods import NCPS, Method, NCPSCutMix, Supervised
from peerseg.networks import SegmentationNetwork
from peerseg.placement import OneProcess
from peerseg.report.table import Table

COUNTS = (2, 3, 8)
KINDS = ("CutMix", "plain, lean", "plain, not lean", "naive CutMix", "naive plain")
MIB = 2**20

Step = Callable[[], object]


def prepare(scene: Scene, count: int, kind: str) -> tuple[list[SegmentationNetwork], Step]:
    """One step of a kind, with the networks that make it.

    Args:
        scene: Networks and batch.
        count: n.
        kind: One of ``KINDS``, or "supervised".

    Returns:
        The networks and the step.
    """
    networks, batch = scene.networks(count), scene.views()
    published = {"ramp": 0.0, "labels": "train", "counted": "all"}
    if kind == "naive CutMix":
        assert batch.partner is not None, "asked for"
        partner = batch.partner
        return networks, lambda: naive.cutmix_loss(networks, batch, partner, CLOCK).backward()  # type: ignore[no-untyped-call]
    if kind == "naive plain":
        return networks, lambda: naive.plain_loss(networks, batch, CLOCK).backward()  # type: ignore[no-untyped-call]
    methods: dict[str, Callable[[], Method]] = {
        "supervised": lambda: Supervised(networks),
        "CutMix": lambda: NCPSCutMix(networks, partner="own", strong=False, **published),  # type: ignore[arg-type]
        "plain, lean": lambda: NCPS(networks, **published),  # type: ignore[arg-type]
        "plain, not lean": lambda: NCPS(networks, lean=False, **published),  # type: ignore[arg-type]
    }
    method = methods[kind]()
    placement = OneProcess(count, "cpu", "float32", channels_last=False)
    return networks, lambda: learn_step(method, batch, placement)


def saved_bytes(scene: Scene, count: int, kind: str) -> int:
    """The peak of what graphs hold during a step.

    Args:
        scene: Networks and batch.
        count: n.
        kind: As for ``prepare``.

    Returns:
        Bytes.
    """
    networks, step = prepare(scene, count, kind)
    with counting_saved(networks) as saved:
        step()
    return saved.peak


def table() -> Table:
    """Saved bytes and resident growth for n = 1, 2, 3 and 8."""
    scene = _scene()
    alone = saved_bytes(scene, 1, "supervised")
    rows = [("supervised, n = 1", *_row(1, "supervised", alone, alone))]
    for count in COUNTS:
        for kind in KINDS:
            peak = saved_bytes(scene, count, kind)
            rows.append((f"{kind}, n = {count}", *_row(count, kind, peak, alone)))
    return Table(("step", "held by graphs, MiB", "of n = 1", "resident growth, MiB", "3nP, MiB"), tuple(rows))


def _row(count: int, kind: str, peak: int, alone: int) -> tuple[str, ...]:
    weights = count * sum(parameter.nbytes for parameter in _scene().networks(1)[0].parameters())
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        growth = fresh.apply(_growth, (count, kind))
    return f"{peak / MIB:.1f}", f"{peak / alone:.2f}", f"{growth:.0f}", f"{3 * weights / MIB:.0f}"


def _growth(count: int, kind: str) -> float:
    return resident_growth(prepare(_scene(), count, kind)[1])


def _scene() -> Scene:
    return paper("resnet18", side=129, batch=2)
