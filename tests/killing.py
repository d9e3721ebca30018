"""Train tiny runs in children that kill themselves with SIGKILL at chosen moments: ``python killing.py FOLDER``.

The children are forked from one process that has imported everything (what torch imports late as well), so that a dozen
deaths cost one start.
"""

import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

from conftest import TINY
from peerseg.data.batch import Batch
from peerseg.experiment.running import start
from peerseg.experiment.settings import settings_of
from peerseg.methods import Clock, Exchange, Loss, NCPSCutMix
from peerseg.training import checkpoint

SAVES = (("best", 2), ("last", 2), ("last", 4))
MOMENTS = ("written", "flushed", "renamed")
POINTS = (*(f"{which}-{step}-{moment}" for which, step in SAVES for moment in MOMENTS), "step-1", "step-3")


def main(folder: Path) -> None:
    """Kill one child at every point, one after the other.

    Args:
        folder: One run folder a point is made in it.
    """
    torch.set_num_threads(1)
    for late in ("torch._dynamo", "torch.utils.tensorboard"):
        importlib.import_module(late)
    for point in POINTS:
        child = os.fork()
        if child == 0:
            arm(point)
            start(settings_of("demo", TINY)[0], folder / point)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), f"{point} was never reached"


def arm(point: str) -> None:
    """Arrange this process's death.

    Args:
        point: One of ``POINTS``.
    """
    first, step, *moment = point.split("-")
    if first == "step":
        _die_in_step(int(step) - 1)
    else:
        _die_in_save(first, int(step), moment[0])


def _die_in_step(step: int) -> None:
    losses = NCPSCutMix.losses

    def dying(self: NCPSCutMix, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        if clock.step == step:
            _die()
        return losses(self, batch, exchange, clock)

    NCPSCutMix.losses = dying  # type: ignore[method-assign]


def _die_in_save(which: str, step: int, moment: str) -> None:
    save = checkpoint.save

    def dying(folder: Path, kind: Any, method: Any, state: Any, optimizer: Any = None) -> Path:
        if (kind, state["step"]) == (which, step):
            HOOKS[moment]()
        return save(folder, kind, method, state, optimizer)

    checkpoint.save = dying


def _before_the_first_flush() -> None:
    checkpoint.os.fsync = lambda _: _die()


def _before_the_rename() -> None:
    checkpoint.Path.rename = lambda *_: _die()


def _after_the_rename() -> None:
    rename = Path.rename

    def dying(self: Path, target: Path) -> None:
        rename(self, target)
        _die()

    checkpoint.Path.rename = dying


HOOKS: dict[str, Callable[[], None]] = {
    "written": _before_the_first_flush,
    "flushed": _before_the_rename,
    "renamed": _after_the_rename,
}


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
