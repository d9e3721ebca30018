"""Studies: every arm with every seed as a run folder of its own, resumed, read again, and never mixed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import TINY
from peerseg.errors import PeersegError
from peerseg.experiment import running
from peerseg.experiment.results import metrics_of
from peerseg.experiment.settings import Settings, settings_of
from peerseg.study import run_study

SEEDS = (0, 3)


@pytest.fixture(scope="module")
def arms() -> dict[str, Settings]:
    alone = {"method.name": "supervised", "method.count": 1}
    return {
        "alone": settings_of("demo", TINY | alone)[0],
        "ncps": settings_of("demo", TINY | {"method.count": 2, "seed": 9})[0],
    }


@pytest.fixture(scope="module")
def made(arms: dict[str, Settings], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    run_study(arms, SEEDS, folder)
    return folder


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that were trained, in order; training itself goes on as ever."""
    names: list[str] = []

    def fit(task: Any, run: Any) -> None:
        names.append(run.path.name)
        real(task, run)

    real = running.fit
    monkeypatch.setattr(running, "fit", fit)
    return names


def test_every_arm_has_every_seed(made: Path, arms: dict[str, Settings], trained: list[str]) -> None:
    begun: list[tuple[str, int]] = []
    study = run_study(arms, SEEDS, made, begin=lambda arm, seed: begun.append((arm, seed)))

    assert begun == [("alone", 0), ("ncps", 0), ("alone", 3), ("ncps", 3)]
    assert sorted(path.name for path in made.iterdir()) == ["alone-seed0", "alone-seed3", "ncps-seed0", "ncps-seed3"]
    for arm, seed in begun:
        run = study.runs[arm][seed]
        assert run.path == made / f"{arm}-seed{seed}"
        assert run.settings() == arms[arm].with_(seed=seed).as_dict()
        assert study.scores[arm][seed] == metrics_of(run)
    assert study.scores["ncps"][0] != study.scores["ncps"][3]


def test_finished_runs_are_read_and_not_trained_again(
    made: Path, arms: dict[str, Settings], trained: list[str]
) -> None:
    files = [path for path in made.rglob("*") if path.is_file()]
    before = {path: path.stat().st_mtime_ns for path in files}
    run_study(arms, SEEDS, made)

    assert trained == []
    assert {path: path.stat().st_mtime_ns for path in files} == before


def test_a_begun_run_goes_on_to_the_same_numbers(
    made: Path, arms: dict[str, Settings], trained: list[str], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "study"))
    shutil.rmtree(folder / "ncps-seed3" / "checkpoints" / "last-0000004")
    again = run_study(arms, SEEDS, folder)

    assert trained == ["ncps-seed3"]
    assert again.scores == run_study(arms, SEEDS, made).scores


def test_a_seed_more_trains_that_seed_alone(
    made: Path, arms: dict[str, Settings], trained: list[str], tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(made, tmp_path / "study"))
    study = run_study({"alone": arms["alone"]}, (0, 3, 4), folder)

    assert trained == ["alone-seed4"]
    assert list(study.scores["alone"]) == [0, 3, 4]


def test_runs_of_other_settings_are_never_mixed_in(made: Path, arms: dict[str, Settings], trained: list[str]) -> None:
    other = arms | {"ncps": arms["ncps"].with_(method__weight=0.5)}
    with pytest.raises(PeersegError, match=r"ncps-seed0' was made with another method.weight: results are never mixed"):
        run_study(other, SEEDS, made)
    assert trained == []
