"""Whether ``torch.compile`` would gain: a learning pass of the default preset's network, compiled and not."""

import time
from collections.abc import Callable
from typing import Any

import torch

from benchmarks.measuring import interleaved
from benchmarks.scenes import lite
from peerseg.placement import OneProcess
from peerseg.report.table import Table

REPETITIONS = 7


def table() -> Table:
    """One pass with its backward pass, as fast as this machine makes it otherwise; needs a C++ compiler."""
    plain, _ = _pass(lambda network: network)
    compiled, seconds = _pass(torch.compile)
    taken = interleaved({"compiled": compiled, "plain": plain}, REPETITIONS)
    ratio = str(taken["compiled"].over(taken["plain"]))
    rows = (("efficientnet_lite0, 4 images of 256 px", ratio, f"{seconds:.0f}"),)
    return Table(("pass and backward pass", "compiled beside not (least to greatest)", "seconds to compile"), rows)


def _pass(change: Callable[[Any], Any]) -> tuple[Callable[[], None], float]:
    """A pass, and how long its first time took."""
    scene, placement = lite(), OneProcess(1, "cpu")
    network = scene.networks(1)[0].to(memory_format=torch.channels_last)
    changed, images = change(network), placement.move(scene.views()).images
    slope = torch.randn(scene.batch, scene.classes, scene.side, scene.side)

    def step() -> None:
        network.zero_grad(set_to_none=True)
        with placement.learning():
            logits = changed(images)
        logits.backward(slope.to(logits.dtype))

    begin = time.perf_counter()
    step()
    return step, time.perf_counter() - begin
