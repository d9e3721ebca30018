"""The rounds of DMT: ordinary runs in the run's own folder, labels of the surest pixels, resumed where they stopped."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file

from conftest import TINY
from peerseg.data.stored import FACTS, StoredLabels, surety_of
from peerseg.errors import PeersegError, StoppedError
from peerseg.experiment import running
from peerseg.experiment.build import build, build_dataset
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.rounds import limits_of, store
from peerseg.experiment.running import ensure, start
from peerseg.experiment.settings import Settings, settings_of
from peerseg.runs import RunFolder

DMT = TINY | {"method.name": "dmt", "method.count": 1, "method.rounds": 2, "steps": 2}


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_of("demo", DMT)[0]


@pytest.fixture(scope="module")
def run(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return start(settings, tmp_path_factory.mktemp("rounds") / "dmt").path


def weights(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = load_file(sorted(run.glob("checkpoints/last-*"))[-1] / "network1.safetensors")
    return found


def test_rounds_are_ordinary_runs_that_teach_one_another(run: Path) -> None:
    assert {path.name for path in (run / "rounds").iterdir()} == {
        *("a0", "b0", "a1", "b1"),
        *("labels-a1", "labels-b1", "labels-a2"),
    }
    kept = {name: RunFolder.open(run / "rounds" / name).settings() for name in ("a0", "b0", "a1", "b1")}
    assert [one["method"]["name"] for one in kept.values()] == ["supervised", "supervised", "dmt", "dmt"]
    assert kept["a1"]["start"] == str(run / "rounds/a0")
    assert kept["b1"]["start"] == str(run / "rounds/b0")
    assert kept["a1"]["loader"]["stored"] == str(run / "rounds/labels-a1")
    assert kept["a0"]["seed"] == kept["a1"]["seed"] == 0 != kept["b0"]["seed"] == kept["b1"]["seed"]
    assert RunFolder.open(run).settings()["loader"]["stored"] is None, "the run is what was asked for"


def test_the_run_answers_as_any_other(run: Path) -> None:
    ensemble = Ensemble(run)
    assert list(ensemble.predictors.members) == ["single"]
    dataset = build_dataset(ensemble.settings)
    assert ensemble.evaluate(dataset, dataset.split().val).miou("single") is not None


def test_each_round_takes_more_of_the_surest_pixels_of_every_class(run: Path, settings: Settings) -> None:
    dataset = build_dataset(settings)
    for name, teacher, share in (("labels-a1", "b0", 0.5), ("labels-b1", "a1", 0.5), ("labels-a2", "b1", 1.0)):
        ensemble, stored = Ensemble(run / "rounds" / teacher, "last"), StoredLabels(run / "rounds" / name)
        kept: dict[int, list[int]] = {}
        dropped: dict[int, list[int]] = {}
        for id in dataset.split().unlabeled:
            labels, found = stored.read(id)[0], ensemble.predict(dataset.image(id))
            assert np.array_equal(labels[labels < 255], found.labels[labels < 255])
            for c in np.unique(found.labels):
                surety = surety_of(found.confidence)
                kept.setdefault(c, []).extend(surety[(found.labels == c) & (labels < 255)].tolist())
                dropped.setdefault(c, []).extend(surety[(found.labels == c) & (labels == 255)].tolist())
        for c, values in kept.items():
            total = len(values) + len(dropped[c])
            assert len(values) >= share * total
            assert not dropped[c] or max(dropped[c]) < min(values)
            assert sum(value > min(values) for value in values) < share * total


def test_a_round_goes_on_with_its_network(run: Path, settings: Settings) -> None:
    started = settings.with_(loader__stored=str(run / "rounds/labels-a1"), start=str(run / "rounds/a0"))
    built = build(started)
    own = built.task.method.network(0).state_dict()
    assert all(bool((own[name] == tensor).all()) for name, tensor in weights(run / "rounds/a0").items())


@pytest.mark.parametrize("lost", ["rounds/a1/checkpoints", "rounds/labels-b1/" + FACTS, "checkpoints"])
def test_what_was_lost_is_made_again_and_nothing_else(
    run: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    trained: list[str] = []
    fit = running.fit

    def noted(task: Any, folder: RunFolder) -> None:
        trained.append(folder.path.name)
        fit(task, folder)

    monkeypatch.setattr(running, "fit", noted)
    before, gone = weights(run), run / lost
    shutil.rmtree(run / "checkpoints")
    if gone.exists():
        shutil.rmtree(gone) if gone.is_dir() else gone.unlink()
    ensure(settings, run)
    after = weights(run)
    assert trained == (["a1", run.name] if lost == "rounds/a1/checkpoints" else [run.name])
    assert all(bool((after[name] == tensor).all()) for name, tensor in before.items())


def test_labeling_goes_on_where_it_stopped(run: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, seen = run / "rounds/labels-a1", []
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    (folder / FACTS).unlink()
    next(folder.glob("*.png")).unlink()
    store(run / "rounds/b0", settings, folder, 0.5, lambda ids, _: (seen.append(id) or id for id in ids))
    assert len(seen) == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_begun_run_may_be_moved(run: Path, settings: Settings, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(run, tmp_path / "moved"))
    shutil.rmtree(moved / "checkpoints")
    shutil.rmtree(moved / "rounds/b1/checkpoints")
    ensure(settings, moved)
    assert all(bool((weights(moved)[name] == tensor).all()) for name, tensor in weights(run).items())


def test_data_that_changed_between_rounds_is_refused(run: Path, settings: Settings, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(run, tmp_path / "moved"))
    shutil.rmtree(moved / "checkpoints")
    facts = json.loads((moved / "rounds/labels-a1" / FACTS).read_text())
    (moved / "rounds/labels-a1" / FACTS).write_text(json.dumps(facts | {"split": "another"}))
    with pytest.raises(PeersegError, match=r"the data has changed since .*labels-a1' was made: restore the images"):
        ensure(settings, moved)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"loader.crop": 17}, r"loader\.crop is \[17, 17\]"),
        ({"data.count": 5, "data.labeled": 3, "data.val": 2}, "there is no unlabeled image to store labels for"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(tmp_path: Path, wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(PeersegError, match=words):
        start(settings_of("demo", DMT | wrong)[0], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_signal_in_a_round_names_the_run_to_go_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fit(_: Any, folder: RunFolder) -> None:
        raise StoppedError(15, str(folder.path))

    monkeypatch.setattr(running, "fit", fit)
    with pytest.raises(StoppedError, match=r"--resume \S*/run$"):
        start(settings_of("demo", DMT)[0], tmp_path / "run")


def test_a_teacher_begins_with_what_its_student_begins_with(run: Path, tiny: Callable[..., Settings]) -> None:
    method = build(tiny({"method.name": "mean-teacher", "method.count": 1, "start": str(run)})).task.method
    teacher = method.teachers.networks[0].state_dict()
    assert all(bool((teacher[name] == tensor).all()) for name, tensor in weights(run).items())


def test_stored_labels_are_moved_with_their_image(run: Path, settings: Settings) -> None:
    stream = build(settings.with_(loader__stored=str(run / "rounds/labels-a2"))).task.stream
    view = stream.batch(0).unlabeled
    assert view is not None
    assert view.labels is not None
    assert view.confidence is not None
    assert view.labels.shape == view.confidence.shape == view.inside.shape
    assert (view.labels[~view.inside] == 255).all()
    assert (view.labels[view.inside] < 6).all(), "all pixels have a label in the last round"


def test_without_stored_labels_a_batch_cannot_be_made(tiny: Callable[..., Settings]) -> None:
    with pytest.raises(PeersegError, match=r"labels that were stored .* give loader\.stored"):
        build(tiny({"method.name": "dmt", "method.count": 1}))


def test_a_start_that_is_no_run_is_refused(tiny: Callable[..., Settings], tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match="holds no checkpoint: expected a run folder"):
        build(tiny({"start": str(tmp_path)}))
    with pytest.raises(PeersegError, match="start is 3, expected the folder of a run"):
        tiny({"start": 3})


def test_a_start_with_other_networks_is_refused(run: Path, tiny: Callable[..., Settings]) -> None:
    with pytest.raises(PeersegError, match="holds 1 networks, expected 3"):
        build(tiny({"start": str(run)}))
    with pytest.raises(PeersegError, match="does not fit"):
        build(tiny({"start": str(run), "method.name": "supervised", "method.count": 1, "network.width": 8}))


def test_limits_keep_at_least_the_share_of_each_class() -> None:
    counts = np.zeros((3, 256), np.int64)
    counts[0, [10, 20, 30, 40]] = 5
    counts[1, 200] = 7
    assert limits_of(counts, 0.5).tolist()[:2] == [30, 200]
    assert limits_of(counts, 0.3).tolist()[:2] == [30, 200]
    assert limits_of(counts, 1.0).tolist()[:2] == [10, 200]
