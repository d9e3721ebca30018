"""Memory of one step: bytes that graphs hold at their peak, and how far resident memory grows."""

from collections.abc import Callable

from benchmarks import naive
from benchmarks.measuring import counting_saved, resident_growth
from benchmarks.scenes import CLOCK, Scene, learn_step, paper
from peerseg.methods import NCPS, Method, NCPSCutMix, Supervised
from peerseg.networks import SegmentationNetwork
from peerseg.placement import OneProcess
from peerseg.report.table import Table

COUNTS = (2, 3, 8)
MIB = 2**20

Step = Callable[[], object]


def steps(scene: Scene, count: int) -> dict[str, tuple[list[SegmentationNetwork], Step]]:
    """One step of each kind, with the networks that make it.

    Args:
        scene: Networks and batch.
        count: n.

    Returns:
        Kind -> networks, and the step.
    """
    batch = scene.views()
    assert batch.partner is not None, "asked for"
    if count == 1:
        networks = scene.networks(1)
        alone = Supervised(networks)
        return {"supervised": (networks, lambda: learn_step(alone, batch, _placement(1)))}
    one, two, three, four, five = (scene.networks(count) for _ in range(5))
    cutmix: Method = NCPSCutMix(one, ramp=0, labels="train", counted="all", partner="own", strong=False)
    lean: Method = NCPS(two, ramp=0, labels="train", counted="all")
    joint: Method = NCPS(three, ramp=0, labels="train", counted="all", lean=False)
    return {
        "CutMix": (one, lambda: learn_step(cutmix, batch, _placement(count))),
        "plain, lean": (two, lambda: learn_step(lean, batch, _placement(count))),
        "plain, not lean": (three, lambda: learn_step(joint, batch, _placement(count))),
        "naive CutMix": (four, lambda: naive.cutmix_loss(four, batch, batch.partner, CLOCK).backward()),  # type: ignore
        "naive plain": (five, lambda: naive.plain_loss(five, batch, CLOCK).backward()),  # type: ignore
    }


def saved_bytes(scene: Scene, count: int) -> dict[str, int]:
    """The peak of what graphs hold during each kind of step.

    Args:
        scene: Networks and batch.
        count: n.

    Returns:
        Kind -> bytes.
    """
    found = {}
    for kind, (networks, step) in steps(scene, count).items():
        with counting_saved(networks) as saved:
            step()
        found[kind] = saved.peak
    return found


def table() -> Table:
    """Saved bytes and resident growth for n = 1, 2, 3 and 8."""
    scene = paper("resnet18", side=129, batch=2)
    alone = saved_bytes(scene, 1)["supervised"]
    rows = [("supervised, n = 1", *_row(scene, 1, "supervised", alone, alone))]
    for count in COUNTS:
        for kind, peak in saved_bytes(scene, count).items():
            rows.append((f"{kind}, n = {count}", *_row(scene, count, kind, peak, alone)))
    return Table(("step", "held by graphs, MiB", "of n = 1", "resident growth, MiB", "3nP, MiB"), tuple(rows))


def _row(scene: Scene, count: int, kind: str, peak: int, alone: int) -> tuple[str, ...]:
    networks, step = steps(scene, count)[kind]
    weights = sum(parameter.nbytes for network in networks for parameter in network.parameters())
    growth = resident_growth(step)
    shown = "-" if growth is None else f"{growth:.0f}"
    return f"{peak / MIB:.1f}", f"{peak / alone:.2f}", shown, f"{3 * weights / MIB:.0f}"


def _placement(count: int) -> OneProcess:
    return OneProcess(count, "cpu", "float32", channels_last=False)
