"""The rounds of DMT: ordinary runs, one after the other, each learning the labels that the one before stored."""

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from peerseg.data.dataset import SegmentationDataset
from peerseg.data.randomness import seed_of
from peerseg.data.splits import digest
from peerseg.data.stored import LEVELS, read_facts, read_stored, surety_of, write_facts, write_stored
from peerseg.errors import PeersegError, named
from peerseg.experiment.build import build, build_dataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.settings import Settings, resolve
from peerseg.runs import RunFolder, disk_errors

SEEDS = 2**31  # of the second network

Ensure = Callable[[Settings, Path], RunFolder]
Watch = Callable[[Iterable[str], str], Iterable[str]]


def prepared(settings: Settings, path: Path, ensure: Ensure, watch: Watch) -> Settings:
    """The settings a run trains with: for DMT with the labels of the rounds before, which are made first.

    Args:
        settings: Of the run.
        path: Its folder; the rounds lie in ``rounds`` there.
        ensure: Makes, resumes or reads a run.
        watch: Shows the progress of labeling.

    Returns:
        The settings, with ``loader.stored`` and ``start`` where the method is DMT.
    """
    if settings.method["name"] != "dmt" or settings.loader["stored"] is not None:
        return settings
    folder, rounds = path / "rounds", settings.method["rounds"]
    other = settings.with_(seed=seed_of(settings.seed, "second network") % SEEDS)
    alone = [resolve(own.as_dict(), {"method.name": "supervised"})[0] for own in (settings, other)]
    if not folder.exists():
        _refuse_what_cannot_work(alone[0])
    a, b = ensure(alone[0], folder / "a0"), ensure(alone[1], folder / "b0")
    for k in range(1, rounds + 1):
        for_a, for_b = folder / f"labels-a{k}", folder / f"labels-b{k}"
        store(b.path, settings, for_a, k / rounds, watch)
        taught = _going_on(settings, a, for_a)
        if k == rounds:
            break
        a = ensure(taught, folder / f"a{k}")
        store(a.path, settings, for_b, k / rounds, watch)
        b = ensure(_going_on(other, b, for_b), folder / f"b{k}")
    return taught


def _refuse_what_cannot_work(settings: Settings) -> None:
    """Before the first of many runs."""
    if not build(settings).split.unlabeled:
        raise PeersegError(
            "there is no unlabeled image to store labels for: add images without masks, or learn from the labeled ones alone with "
            "--method.name supervised"
        )


def _going_on(settings: Settings, run: RunFolder, labels: Path) -> Settings:
    """A round: begin with what a run ended with, and learn the labels."""
    return settings.with_(loader__stored=str(labels), start=str(run.path))


def store(teacher: Path, settings: Settings, folder: Path, share: float, watch: Watch) -> None:
    """Store a run's labels of the unlabeled images, and from when on they are among the surest of their class.

    Goes on where it stopped; once made, labels are kept.

    Args:
        teacher: The run.
        settings: Whose data.
        folder: Where labels go.
        share: Of the pixels of each class that count.
        watch: Shows the progress.
    """
    dataset = build_dataset(settings)
    split, facts = dataset.split(), read_facts(folder)
    if facts is not None:
        if facts["split"] != digest(split):
            raise PeersegError(
                f"the data has changed since {str(folder)!r} was made: restore the images, masks and lists, or start a new run"
            )
        return
    with disk_errors(folder):
        missing = [id for id in split.unlabeled if not (folder / f"{id}.png").exists()]
        if missing:
            _label(Ensemble(teacher, "last"), dataset, missing, folder, watch)
        counts = np.zeros((len(dataset.label_space), LEVELS), np.int64)
        for id in split.unlabeled:
            np.add.at(counts, read_stored(folder, id), 1)
        limits = [int(limit) for limit in limits_of(counts, share)]
        write_facts(folder, limits, {"split": digest(split), "share": share})


def _label(ensemble: Ensemble, dataset: SegmentationDataset, ids: list[str], folder: Path, watch: Watch) -> None:
    for id in watch(ids, folder.name):
        with named(dataset.file(id)):
            found = ensemble.predict(dataset.image(id))
        write_stored(folder, id, found.labels, surety_of(found.confidence))


def limits_of(counts: npt.NDArray[np.int64], share: float) -> npt.NDArray[np.int64]:
    """From which surety on the surest pixels of each class are at least a share of them.

    Args:
        counts: (C, levels), pixels by class and surety.
        share: Of the pixels of each class.

    Returns:
        (C,), levels.
    """
    above = counts[:, ::-1].cumsum(axis=1)[:, ::-1]
    enough = above >= share * counts.sum(axis=1, keepdims=True)
    limits: npt.NDArray[np.int64] = enough.sum(axis=1) - 1
    return limits
