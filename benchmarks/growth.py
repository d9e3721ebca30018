"""How cost grows: time and held bytes of a CutMix step over n, over resolution and over batch, with the law that fits."""

from collections.abc import Sequence

import numpy as np

from benchmarks.measuring import interleaved
from benchmarks.memory import MIB, prepare, saved_bytes
from benchmarks.scenes import Scene, small
from peerseg.report.chart import line_chart
from peerseg.report.table import Table

REPETITIONS = 3
KINDS = ("CutMix", "naive CutMix")
AXES: dict[str, tuple[str, Sequence[int]]] = {
    "n": ("networks, n", (2, 3, 4, 5, 6, 7, 8)),
    "resolution": ("thousand pixels a view (n = 3)", (48, 64, 80, 96, 112, 128)),
    "batch": ("images of each kind (n = 3)", (2, 4, 6, 8, 12, 16)),
}


def measure(axis: str) -> tuple[Table, dict[str, str]]:
    """Measure along one axis.

    Args:
        axis: "n", "resolution" or "batch".

    Returns:
        The table, and two charts by name.
    """
    name, values = AXES[axis]
    seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
    held: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for value in values:
        scene, count = _scene(axis, value)
        taken = interleaved({kind: prepare(scene, count, kind)[1] for kind in KINDS}, REPETITIONS)
        for kind in KINDS:
            seconds[kind].append(taken[kind].median)
            held[kind].append(saved_bytes(scene, count, kind) / MIB)
    places = [value**2 / 1000 if axis == "resolution" else float(value) for value in values]
    rows = [
        (f"{kind}, {what}", law(places, numbers[kind], unit))
        for what, unit, numbers in (("time", "ms", _thousandfold(seconds)), ("held by graphs", "MiB", held))
        for kind in KINDS
    ]
    charts = {
        f"{axis}-time": line_chart(_points(places, seconds), across=name, up="seconds a step"),
        f"{axis}-memory": line_chart(_points(places, held), across=name, up="MiB held by graphs"),
    }
    return Table((f"over {name}", "law that fits"), tuple(rows)), charts


def law(places: Sequence[float], numbers: Sequence[float], unit: str) -> str:
    """The straight line through some numbers, in words.

    Args:
        places: Where.
        numbers: What was found there.
        unit: Of the numbers.

    Returns:
        Such as "12.0 ms and 3.1 ms more for each, 99.8% explained".
    """
    slope, start = np.polyfit(places, numbers, 1)
    residual = np.asarray(numbers) - (slope * np.asarray(places) + start)
    spread = float(np.var(numbers))
    if max(numbers) - min(numbers) <= 0.01 * max(numbers):
        return f"{np.mean(numbers):.1f} {unit}, the same everywhere"
    return (
        f"{start:.1f} {unit} and {slope:.2f} {unit} more for each; {100 * (1 - residual.var() / spread):.1f}% explained"
    )


def _scene(axis: str, value: int) -> tuple[Scene, int]:
    if axis == "n":
        return small(side=96, batch=4), value
    return (small(side=value, batch=4) if axis == "resolution" else small(side=64, batch=value)), 3


def _thousandfold(numbers: dict[str, list[float]]) -> dict[str, list[float]]:
    return {kind: [1000 * number for number in values] for kind, values in numbers.items()}


def _points(places: Sequence[float], numbers: dict[str, list[float]]) -> dict[str, list[tuple[float, float]]]:
    return {kind: list(zip(places, values, strict=True)) for kind, values in numbers.items()}
