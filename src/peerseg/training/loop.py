"""The loop: draw the batch, back-propagate each loss the method yields, step, evaluate, record, save."""

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from peerseg.data.batch import Batch, cut
from peerseg.data.dataset import SegmentationDataset
from peerseg.data.loading import BatchStream
from peerseg.data.streaming import stream_batches
from peerseg.errors import PeersegError, StoppedError
from peerseg.inference.evaluate import evaluate
from peerseg.inference.protocol import Protocol
from peerseg.methods.base import Clock, Loss, Method
from peerseg.placement.base import Placement
from peerseg.runs import RunFolder
from peerseg.training import checkpoint
from peerseg.training.optimize import Optimization
from peerseg.training.record import Record
from peerseg.training.stopping import stop_requests


@dataclass(frozen=True)
class Task:
    """All that one training needs.

    Args:
        method: What learns.
        stream: Where batches come from.
        optimization: How it steps.
        placement: Where it lives.
        dataset: Whose val images judge.
        val: Their ids.
        protocol: How they are shown.
        steps: How long.
        seed: Of all chance.
        every: Steps between evaluations, each of which is saved.
        best: The vote that chooses the best checkpoint.
        workers: Processes that make batches.
        parts: How many parts of a batch are learned from one after another, before the step.
        facts: Plain data saved with every checkpoint.
    """

    method: Method
    stream: BatchStream
    optimization: Optimization
    placement: Placement
    dataset: SegmentationDataset
    val: Sequence[str]
    protocol: Protocol
    steps: int
    seed: int
    every: int
    best: str
    workers: int
    parts: int
    facts: dict[str, Any]


def fit(task: Task, run: RunFolder) -> None:
    """Train to the end, from the newest whole checkpoint if there is one.

    Args:
        task: What to train.
        run: Where its record and checkpoints lie; the caller holds its lock.
    """
    task.placement.place(task.method)
    start, best = _resume(task, run)
    record = Record(run, run.path.name, start, task.steps)
    with task.placement.running(), stop_requests() as asked, closing(record):
        for step, batch in enumerate(stream_batches(task.stream, start, task.steps, workers=task.workers), start):
            clock = Clock(task.seed, step, task.steps, task.placement.part)
            _learn(task, record, batch, clock)
            due, stop = (step + 1) % task.every == 0 or step + 1 == task.steps, bool(asked)
            if due or stop:
                _refuse_broken_weights(task, clock, batch)
            if due:
                best = _judge(task, run, record, clock, best)
            if due or stop:
                _save(task, run, "last", step + 1, best)
            if stop and step + 1 < task.steps:
                raise StoppedError(asked[0], str(run.path))


def _learn(task: Task, record: Record, batch: Batch, clock: Clock) -> None:
    for part, piece in enumerate(cut(task.placement.move(batch), task.parts)):
        now = replace(clock, part=clock.part * task.parts + part)
        with task.placement.learning():
            for loss in task.method.losses(piece, task.placement.exchange, now):
                record.loss(loss, task.parts, clock, batch.files)
                back_propagate(loss, task.placement.share / task.parts)
    task.placement.reduce(task.optimization.parameters())
    rate = task.optimization.step(clock)
    task.method.after_step(clock)
    record.step(clock, rate)


def back_propagate(loss: Loss, share: float) -> None:
    """Push one loss, or a feature's gradient, back through its graph.

    Args:
        loss: As the method yielded it.
        share: What a loss counts of the step's.
    """
    with torch.autocast(loss.value.device.type, enabled=False):  # each operation goes back in the type it was made in
        if loss.gradient is None:
            (loss.value * share).backward()  # type: ignore[no-untyped-call]
        else:
            loss.value.backward(loss.gradient)  # type: ignore[no-untyped-call]


def _refuse_broken_weights(task: Task, clock: Clock, batch: Batch) -> None:
    """Weights that are no numbers must not become a checkpoint: the one before is still good."""
    if not all(bool(parameter.isfinite().all()) for parameter in task.method.parameters()):
        raise PeersegError(
            f"the weights are no numbers after step {clock.step + 1}, last learned from the files "
            f"{', '.join(map(repr, batch.files))}: look at them, or lower optimizer.rate; the checkpoint before is kept"
        )


def _judge(task: Task, run: RunFolder, record: Record, clock: Clock, best: float | None) -> float | None:
    predictors = task.method.predictors()
    scores = evaluate(predictors.members, predictors.votes, task.dataset, task.val, protocol=task.protocol)
    record.scores(scores, clock)
    value = scores.miou(task.best)
    if value is None or (best is not None and value <= best):
        return best
    _save(task, run, "best", clock.step + 1, value)
    return value


def _save(task: Task, run: RunFolder, which: checkpoint.Which, step: int, best: float | None) -> None:
    state = task.facts | {"step": step, "steps": task.steps, "best": best, "vote": task.best}
    optimizer = task.optimization.state_dict() if which == "last" else None
    checkpoint.save(run.path / "checkpoints", which, task.method, state, optimizer)


def _resume(task: Task, run: RunFolder) -> tuple[int, float | None]:
    folder = run.path / "checkpoints"
    found = checkpoint.find(folder, "last")
    start = 0 if found is None else found.state["step"]
    if found is not None:
        for damage in found.damaged:
            print(f"{damage}; going on from {found.path.name}", file=sys.stderr, flush=True)
        changed = [name for name, fact in task.facts.items() if found.state.get(name) != fact]
        if changed:
            raise PeersegError(
                f"{', '.join(changed)} of the data are not what {str(run.path)!r} began with: restore classes.yaml and the masks, "
                "or start a new run"
            )
        checkpoint.load_method(found.path, task.method)
        task.optimization.load_state_dict(checkpoint.load_optimizer(found.path))
    # What was saved or noted later is made again.
    checkpoint.clean(folder, start)
    run.drop_after(start)
    return start, None if found is None else found.state["best"]


def finished(path: Path, steps: int) -> bool:
    """Whether a run has made all its steps.

    Args:
        path: The run folder.
        steps: How many its settings say.

    Returns:
        True where its newest whole checkpoint is of the last step.
    """
    found = checkpoint.find(path / "checkpoints", "last")
    if found is not None and found.state["steps"] != steps:
        raise PeersegError(
            f"config.yaml of {str(path)!r} says {steps} steps, but the run began with {found.state['steps']}: restore it, or start "
            "a new run"
        )
    return found is not None and found.state["step"] == steps
