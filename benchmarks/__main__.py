"""``python -m benchmarks [PART ...]``: measure and write the page; everything if no part is named."""

import platform
import sys
from collections.abc import Callable

import torch

from benchmarks import compiling, gradients, growth, loading, memory, speed
from benchmarks.page import write_block, write_chart, write_table
from peerseg.errors import PeersegError, nearest
from peerseg.placement.single import has_bfloat16


def machine() -> None:
    """Write what the numbers were measured on."""
    halved = "with" if has_bfloat16(torch.device("cpu")) else "without"
    cores = torch.get_num_threads()
    write_block(
        "machine",
        f"PyTorch {str(torch.__version__).split('+')[0]}, Python {platform.python_version()}, {cores} threads of an "
        f"{platform.machine()} processor {halved} bfloat16 arithmetic.",
    )


def grow() -> None:
    """Write how cost grows along each axis."""
    for axis in growth.AXES:
        table, charts = growth.measure(axis)
        write_table(f"growth-{axis}", table)
        for name, svg in charts.items():
            write_chart(name, svg)


PARTS: dict[str, Callable[[], None]] = {
    "machine": machine,
    "memory": lambda: write_table("memory", memory.table()),
    "gradients": lambda: write_table("gradients", gradients.table()),
    "speed": lambda: write_table("speed", speed.table()),
    "loading": lambda: write_table("loading", loading.table()),
    "growth": grow,
    "compiling": lambda: write_table("compiling", compiling.table()),
}


def main(words: list[str]) -> None:
    """Run some parts.

    Args:
        words: Their names; all where empty.
    """
    for word in words:
        if word not in PARTS:
            raise PeersegError(f"{word!r} is no part of the benchmarks; {nearest(word, PARTS)}")
    for name in words or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main(sys.argv[1:])
