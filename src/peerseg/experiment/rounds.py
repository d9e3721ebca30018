"""The rounds of DMT: ordinary runs, one after the other, each learning the labels that the one before stored."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from peerseg.data.randomness import seed_of
from peerseg.data.stored import SURE, read_stored, write_stored
from peerseg.experiment.build import build_dataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.settings import Settings, resolve
from peerseg.runs import RunFolder, disk_errors, write_text

FINISHED = "finished.json"
SEEDS = 2**31  # of the second network

Ensure = Callable[[Settings, Path], RunFolder]


def prepared(settings: Settings, path: Path, ensure: Ensure, say: Callable[[str], None]) -> Settings:
    """The settings a run trains with: for DMT with the labels of the rounds before, which are made first.

    Args:
        settings: Of the run.
        path: Its folder; the rounds lie in ``rounds`` there.
        ensure: Makes, resumes or reads a run.
        say: Told of each round.

    Returns:
        The settings, with ``loader.stored`` and ``start`` where the method is DMT.
    """
    if settings.method["name"] != "dmt" or settings.loader["stored"] is not None:
        return settings
    folder, rounds = path / "rounds", settings.method["rounds"]
    other = settings.with_(seed=seed_of(settings.seed, "second network") % SEEDS)
    a, b = (
        ensure(resolve(own.as_dict(), {"method.name": "supervised"})[0], folder / f"{name}0")
        for own, name in ((settings, "a"), (other, "b"))
    )
    for k in range(1, rounds + 1):
        say(f"round {k} of {rounds}")
        next_a = _taught(settings, a, b, folder / f"labels-a{k}", k / rounds)
        if k == rounds:
            break
        a = ensure(next_a, folder / f"a{k}")
        b = ensure(_taught(other, b, a, folder / f"labels-b{k}", k / rounds), folder / f"b{k}")
    return next_a


def _taught(settings: Settings, student: RunFolder, teacher: RunFolder, folder: Path, share: float) -> Settings:
    """A round: go on with the student, and learn what the teacher says of the unlabeled images."""
    store(teacher.path, settings, folder, share)
    return settings.with_(loader__stored=str(folder), start=str(student.path))


def store(teacher: Path, settings: Settings, folder: Path, share: float) -> None:
    """Store a run's labels of the unlabeled images, of each class the surest; once made they are kept.

    Args:
        teacher: The run.
        settings: Whose data.
        folder: Where labels go.
        share: Of the pixels of each class.
    """
    if (folder / FINISHED).exists():
        return
    dataset = build_dataset(settings)
    ids, ensemble = dataset.split().unlabeled, Ensemble(teacher, "last")
    counts = np.zeros((len(dataset.label_space), SURE + 1), np.int64)
    with disk_errors(folder):
        for id in ids:
            found = ensemble.predict(dataset.image(id))
            confidence = np.floor(found.confidence * SURE).astype(np.uint8)
            np.add.at(counts, (found.labels, confidence), 1)
            write_stored(folder, id, found.labels, confidence)
        limits = limits_of(counts, share)
        for id in ids:
            labels, confidence = read_stored(folder, id)
            write_stored(folder, id, np.where(confidence >= limits[labels], labels, 255).astype(np.uint8), confidence)
        write_text(folder / FINISHED, f'{{"share": {share}, "images": {len(ids)}}}\n')


def limits_of(counts: npt.NDArray[np.int64], share: float) -> npt.NDArray[np.int64]:
    """From which confidence on the surest pixels of each class are at least a share of them.

    Args:
        counts: (C, 256), pixels by class and confidence.
        share: Of the pixels of each class.

    Returns:
        (C,), in 255ths.
    """
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    enough = above >= share * counts.sum(axis=1, keepdims=True)
    limits: npt.NDArray[np.int64] = enough.sum(axis=1) - 1
    return limits
