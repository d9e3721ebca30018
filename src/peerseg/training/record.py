"""What a training tells: rows on disk, TensorBoard events if it is installed, a progress bar."""

import math
import sys
from collections.abc import Mapping
from typing import Any

from tqdm import tqdm

from peerseg.errors import PeersegError
from peerseg.inference.evaluate import Scores
from peerseg.methods.base import Clock, Loss
from peerseg.runs import LOSSES, METRICS, Row, RunFolder

EVERY = 10  # steps between rows of losses


class Record:
    """The record of one run.

    Args:
        run: Where rows go.
        name: What the progress bar says.
        start: The first step.
        steps: Of the whole training.
    """

    def __init__(self, run: RunFolder, name: str, start: int, steps: int) -> None:
        self._run, self._name = run, name
        self._losses: dict[str, float] = {}
        self._scores: dict[str, str] = {}
        self._bar = tqdm(total=steps, initial=start, desc=name, unit="step", disable=None, dynamic_ncols=True)
        self._board = _tensorboard(run, start)

    def loss(self, loss: Loss, parts: int, clock: Clock, files: tuple[str, ...]) -> None:
        """Note one loss of a step, or of a part of one; stop where it is no number.

        Args:
            loss: Those of one name are added up; a feature with its gradient has no value to note.
            parts: How many parts the batch is learned from in.
            clock: The step.
            files: Of the batch, for the message.
        """
        if loss.gradient is not None:
            return
        value = float(loss.value.detach()) / parts
        if not math.isfinite(value):
            raise PeersegError(
                f"the loss {loss.name!r} is {value} at step {clock.step + 1}, from the files {', '.join(map(repr, files))}: look "
                "at them, or lower optimizer.rate; the checkpoint before is kept"
            )
        self._losses[loss.name] = self._losses.get(loss.name, 0.0) + value

    def step(self, clock: Clock, rate: float) -> None:
        """Note that a step is done.

        Args:
            clock: The step.
            rate: Its learning rate.
        """
        done = clock.step + 1
        self._bar.update()
        if done % EVERY == 0 or done == clock.steps:
            self._run.append(LOSSES, [{"step": done, "rate": rate, **self._losses}])
            self._send({f"loss/{name}": value for name, value in self._losses.items()}, done)
            total = sum(self._losses.values())
            self._bar.set_postfix({"loss": f"{total:.3f}", **self._scores}, refresh=False)
        self._losses = {}

    def scores(self, scores: Scores, clock: Clock) -> None:
        """Note an evaluation.

        Args:
            scores: Of every vote.
            clock: The step.
        """
        done = clock.step + 1
        self._run.append(METRICS, [_row(scores, rule, done) for rule in scores.matrices])
        means = {rule: value for rule in scores.matrices if (value := scores.miou(rule)) is not None}
        self._send({f"miou/{rule}": value for rule, value in means.items()}, done)
        self._scores = {rule: f"{value:.1f}" for rule, value in means.items()}
        if self._bar.disable:
            shown = ", ".join(f"{rule} {value}" for rule, value in self._scores.items())
            print(f"{self._name}: step {done} of {clock.steps}: mIoU {shown}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the bar and flush the events."""
        self._bar.close()
        if self._board is not None:
            self._board.close()

    def _send(self, values: Mapping[str, float], step: int) -> None:
        if self._board is not None:
            for name, value in values.items():
                self._board.add_scalar(name, value, step)


def _row(scores: Scores, rule: str, step: int) -> Row:
    row: dict[str, str | int | float | None] = {"step": step, "vote": rule, "miou": scores.miou(rule)}
    return row | {"disagreement": scores.disagreement} | {f"iou:{k}": value for k, value in scores.iou(rule).items()}


def _tensorboard(run: RunFolder, start: int) -> Any:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(run.path / "tensorboard"), purge_step=start + 1)
