"""Running an experiment: a run folder from its settings to its last step, now or later."""

import platform
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import PIL
import torch
from tqdm import tqdm

import peerseg
from peerseg.data.dataset import Split
from peerseg.data.splits import digest
from peerseg.errors import PeersegError, StoppedError
from peerseg.experiment.build import Built, build
from peerseg.experiment.plans import LoaderPlan
from peerseg.experiment.rounds import prepared
from peerseg.experiment.settings import FREE, PLACES, Settings, differing, flat, resolve
from peerseg.runs import RunFolder
from peerseg.training.loop import finished, fit


def start(settings: Settings, path: str | Path) -> RunFolder:
    """Train a new run to its end.

    Args:
        settings: Resolved settings.
        path: The folder to make.

    Returns:
        The run.
    """
    run = RunFolder.create(path, settings.as_dict())
    try:
        _train(run, settings)
    except (PeersegError, KeyboardInterrupt):
        run.discard()
        raise
    return run


def resume(path: str | Path, overrides: dict[str, Any] | None = None) -> RunFolder:
    """Train an existing run to its end.

    Args:
        path: Its folder.
        overrides: Settings that change no result, such as ``loader.workers``; others must be as they were.

    Returns:
        The run.
    """
    run = RunFolder.open(path)
    before = run.settings()
    settings, _ = resolve(before, overrides or {})
    changed = differing(before, settings.as_dict())
    if changed:
        raise PeersegError(
            f"{', '.join(changed)} cannot change when {str(path)!r} is resumed: leave it out, or start a new run with it"
        )
    if finished(run.path, settings.steps):
        say(f"{path} is finished: all {settings.steps} steps are made")
        return run
    _train(run, settings)
    return run


def ensure(settings: Settings, path: str | Path) -> RunFolder:
    """A finished run of these settings: read if it is there, resumed if it was begun, made otherwise.

    Args:
        settings: Resolved settings.
        path: Its folder.

    Returns:
        The run.
    """
    if not (Path(path) / "config.yaml").exists():
        return start(settings, path)
    changed = differing(RunFolder.open(path).settings(), settings.as_dict())
    if changed:
        raise PeersegError(
            f"{str(path)!r} was made with another {', '.join(changed)}: results are never mixed, choose another --out"
        )
    now = flat(settings.as_dict())
    return resume(path, {name: now[name] for name in (*FREE, *PLACES) if now.get(name) is not None})


def _train(run: RunFolder, settings: Settings) -> None:
    with run.lock():
        try:
            settings = prepared(settings, run.path, ensure, watch)
        except StoppedError as stopped:
            raise StoppedError(stopped.signal, str(run.path)) from stopped
        built = build(settings, watch)
        for line in (*built.notes, *plan(settings, built)):
            say(line)
        before, now = run.read_json("environment.json"), environment(built)
        _refuse_changed_data(run, before, now)
        run.write_json("environment.json", before | {"resumed": [*before.get("resumed", []), now]} if before else now)
        fit(built.task, run)


def _refuse_changed_data(run: RunFolder, before: dict[str, Any], now: dict[str, Any]) -> None:
    if before and before["split"] != now["split"]:
        raise PeersegError(
            f"the data of {str(run.path)!r} has changed: its split was {before['split']} and is {now['split']} now; restore the "
            "images, masks and lists, or start a new run"
        )
    for name in ("device", "threads", "versions"):
        if before and before[name] != now[name]:
            say(f"{name} was {before[name]} and is {now[name]} now: the result may differ in rounding")


def plan(settings: Settings, built: Built) -> list[str]:
    """What is going to happen, in sentences.

    Args:
        settings: Of the run.
        built: Its parts.

    Returns:
        A few lines.
    """
    split, task, loader = built.split, built.task, LoaderPlan(**settings.loader)
    counts = f"{len(split.labeled)} labeled, {len(split.unlabeled)} unlabeled and {len(split.val)} val images"
    pool = max(len(split.unlabeled), 1)
    passes = f"{settings.steps * loader.batch / len(split.labeled):.1f} passes over the labeled"
    if task.method.wants.unlabeled:
        passes += f" and {settings.steps * loader.unlabeled_count / pool:.1f} over the unlabeled images"
    else:
        passes += " images; unlabeled ones are not looked at"
    size = sum(parameter.numel() for parameter in task.method.parameters())
    networks = f"{task.method.count} network{'s' if task.method.count > 1 else ''}"
    return [
        f"{counts}, {len(task.dataset.label_space)} classes",
        f"{settings.method['name']}: {networks}, {size / 1e6:.1f} million parameters in all, on {task.placement.describe()}",
        f"{settings.steps} steps are {passes}; learning rate {settings.optimizer['rate']} at the first step",
    ]


def environment(built: Built) -> dict[str, Any]:
    """What a result depends on besides its settings.

    Args:
        built: The parts of the run.

    Returns:
        Plain data.
    """
    versions = {"peerseg": peerseg.__version__, "python": platform.python_version(), "torch": str(torch.__version__)}
    versions |= {"numpy": np.__version__, "pillow": PIL.__version__}
    return {
        "versions": versions,
        "commit": commit(),
        "split": digest(built.split),
        "val": digest(Split((), (), built.split.val)),
        "device": built.task.placement.describe(),
        "threads": torch.get_num_threads(),
        "platform": platform.platform(),
    }


def commit() -> str | None:
    """The commit of the source tree, where peerseg runs from one."""
    here = Path(__file__)

    def git(*words: str) -> str:
        asked = subprocess.run(["git", "-C", str(here.parent), *words], capture_output=True, text=True, check=True)
        return asked.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", here.name)  # an environment may lie inside a repository that is not ours
        return git("describe", "--always", "--dirty", "--abbrev=40")
    except (OSError, subprocess.CalledProcessError):
        return None


def say(line: str) -> None:
    """Tell the person at the terminal; standard output stays free for results.

    Args:
        line: One sentence.
    """
    print(line, file=sys.stderr, flush=True)


def watch(items: Iterable[str], what: str) -> Iterable[str]:
    """Show the progress of a slow loop.

    Args:
        items: What is gone through.
        what: What it is.

    Returns:
        The same items.
    """
    return tqdm(items, desc=what, disable=None, leave=False)
