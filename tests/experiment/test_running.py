"""Running: a folder before anything slow, resumed to the same numbers, never mixed, and said what is going to happen."""

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from conftest import TINY
from peerseg.data import Shapes, Split
from peerseg.data.splits import digest
from peerseg.errors import PeersegError
from peerseg.experiment import running
from peerseg.experiment.build import build
from peerseg.experiment.running import commit, ensure, plan, resume, start
from peerseg.experiment.settings import Settings, settings_of
from peerseg.runs import METRICS, RunFolder

Tiny = Callable[..., Settings]


@pytest.fixture(scope="module")
def settings() -> Settings:
    return settings_of("demo", TINY)[0]


@pytest.fixture(scope="module")
def finished_run(settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return start(settings, tmp_path_factory.mktemp("runs") / "tiny").path


@pytest.fixture
def finished(finished_run: Path, tmp_path: Path) -> Path:
    """A copy to play with."""
    return Path(shutil.copytree(finished_run, tmp_path / "finished"))


@pytest.fixture
def begun(finished_run: Path, tmp_path: Path) -> Path:
    """The same run as if it had been killed before it saved step 4."""
    path = Path(shutil.copytree(finished_run, tmp_path / "begun"))
    shutil.rmtree(path / "checkpoints" / "last-0000004")
    return path


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is a mistake here."""

    def fit(*_: Any) -> None:
        raise AssertionError("nothing was to be trained")

    monkeypatch.setattr(running, "fit", fit)


def weights(run: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(run.glob("checkpoints/last-0000004/network*.safetensors"))]


def test_a_run_leaves_what_the_contract_names(finished_run: Path, settings: Settings) -> None:
    names = {path.name for path in finished_run.iterdir()}

    assert {"config.yaml", "environment.json", "losses.csv", "metrics.csv", "checkpoints"} <= names
    assert yaml.safe_load((finished_run / "config.yaml").read_text()) == settings.as_dict()
    assert {path.name for path in finished_run.glob("checkpoints/last-*")} == {"last-0000002", "last-0000004"}
    assert len(list(finished_run.glob("checkpoints/best-*/network*.safetensors"))) == 3
    assert [row["step"] for row in RunFolder.open(finished_run).rows(METRICS)] == ["2"] * 6 + ["4"] * 6


def test_the_environment_says_what_a_result_depends_on(finished_run: Path, settings: Settings) -> None:
    facts = json.loads((finished_run / "environment.json").read_text())

    assert {"versions", "commit", "split", "val", "device", "threads"} <= facts.keys()
    assert {"peerseg", "python", "torch", "numpy"} <= facts["versions"].keys()
    assert facts["split"] == digest(build(settings).split)


def test_the_folder_is_there_before_anything_slow(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*_: Any) -> None:
        assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["steps"] == 4
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "build", slow)
    with pytest.raises(KeyboardInterrupt):
        start(tiny(), tmp_path / "run")


def test_settings_that_are_refused_leave_the_folder_free(
    tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PeersegError, match="n-CPS was given 1 network"):
        start(tiny({"method.count": 1}), tmp_path / "run")
    monkeypatch.setattr(running, "fit", lambda *_: None)

    assert not (tmp_path / "run").exists()
    assert start(tiny(), tmp_path / "run").settings()["method"]["count"] == 3


def test_an_existing_run_is_not_overwritten(finished: Path, settings: Settings, idle: None) -> None:
    with pytest.raises(PeersegError, match="already holds a run; go on with"):
        start(settings, finished)


@pytest.mark.parametrize("name", ["config.yaml only", "begun"])
def test_a_begun_run_ends_as_if_it_had_never_stopped(
    name: str, begun: Path, finished_run: Path, tmp_path: Path
) -> None:
    path = begun
    if name == "config.yaml only":
        path = tmp_path / "fresh"
        path.mkdir()
        shutil.copy(begun / "config.yaml", path)
    resume(path)

    assert weights(path) == weights(finished_run)
    assert (path / METRICS).read_text() == (finished_run / METRICS).read_text()
    assert (path / "losses.csv").read_text() == (finished_run / "losses.csv").read_text()


def test_workers_may_change_when_a_run_goes_on(begun: Path, finished_run: Path) -> None:
    resume(begun, {"loader.workers": 1})

    assert weights(begun) == weights(finished_run)


def test_a_finished_run_says_so(finished: Path, idle: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert resume(finished).path == finished
    assert f"{finished} is finished: all 4 steps are made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("overrides", "named"),
    [
        ({"optimizer.rate": 0.5}, "optimizer.rate"),
        ({"steps": 8}, "steps"),
        ({"seed": 1, "loader.workers": 2, "loader.batch": 4}, "loader.batch, seed"),
        ({"method.count": 2}, "method.count"),
    ],
)
def test_other_settings_are_refused_by_name(begun: Path, idle: None, overrides: dict[str, Any], named: str) -> None:
    with pytest.raises(
        PeersegError, match=f"^{named} cannot change when .* is resumed: leave it out, or start a new run"
    ):
        resume(begun, overrides)


def test_a_setting_said_again_is_no_change(finished: Path, idle: None) -> None:
    resume(finished, {"optimizer.rate": 0.1, "steps": 4})


def test_only_a_run_is_resumed(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match="is no run folder"):
        resume(tmp_path)


def test_a_checkpoint_of_another_number_of_networks_is_refused(begun: Path) -> None:
    config = begun / "config.yaml"
    config.write_text(config.read_text().replace("count: 3", "count: 2"))
    with pytest.raises(PeersegError, match=r"holds 3 networks, expected 2: set method.count to 3"):
        resume(begun)


def test_changed_data_is_refused(begun: Path, idle: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shapes, "split", lambda self: Split(self.ids[:2], self.ids[2:8], self.ids[8:]))
    with pytest.raises(
        PeersegError, match=r"the data of .*begun' has changed: its split was \w+ and is \w+ now; restore"
    ):
        resume(begun)


def test_classes_that_mean_something_else_are_refused(begun: Path, tmp_path: Path) -> None:
    state = begun / "checkpoints" / "last-0000002" / "state.json"
    saved = state.read_text()
    manifest = state.with_name("manifest.json")
    for old, new, named in (('"ground"', '"soil"', "classes"), ('"masks": "', '"masks": "0', "masks")):
        assert old in saved
        state.write_text(saved.replace(old, new))
        sums = json.loads(manifest.read_text()) | {"state.json": hashlib.sha256(state.read_bytes()).hexdigest()}
        manifest.write_text(json.dumps(sums))
        with pytest.raises(
            PeersegError, match=f"^{named} of the data are not what .* began with: restore classes.yaml"
        ):
            resume(begun)


def test_another_machine_is_said_and_kept_in_the_record(
    begun: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(running.np, "__version__", "0.0")
    resume(begun)
    facts = json.loads((begun / "environment.json").read_text())

    assert "versions was {" in capsys.readouterr().err
    assert facts["versions"]["numpy"] != "0.0"
    assert [made["versions"]["numpy"] for made in facts["resumed"]] == ["0.0"]


def test_ensure_reads_a_finished_run(finished: Path, settings: Settings, idle: None) -> None:
    assert ensure(settings.with_(loader__workers=3), finished).path == finished


def test_ensure_goes_on_with_a_begun_run(begun: Path, finished_run: Path, settings: Settings) -> None:
    ensure(settings, begun)
    assert weights(begun) == weights(finished_run)


def test_ensure_never_mixes(finished: Path, settings: Settings, idle: None) -> None:
    other = settings.with_(seed=1, optimizer__rate=0.5)
    with pytest.raises(PeersegError, match=r"was made with another optimizer.rate, seed: results are never mixed"):
        ensure(other, finished)


def test_ensure_makes_a_new_run(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(running, "fit", lambda task, run: made.append(run.path.name))
    ensure(settings, tmp_path / "new")

    assert made == ["new"]


def test_the_plan_counts_images_networks_and_passes(tiny: Tiny) -> None:
    settings = tiny({"placement.precision": "float32"})
    images, networks, steps = plan(settings, build(settings))

    assert images == "3 labeled, 5 unlabeled and 2 val images, 6 classes"
    assert networks.startswith("ncps-cutmix: 3 networks, ")
    assert networks.endswith(" million parameters in all, on cpu in float32")
    assert steps.startswith(
        "4 steps are 2.7 passes over the labeled and 1.6 over the unlabeled images; learning rate 0.1"
    )


def test_the_plan_of_one_network_says_what_is_not_looked_at(tiny: Tiny) -> None:
    settings = tiny({"method.name": "supervised", "method.count": 1})
    _, networks, steps = plan(settings, build(settings))

    assert networks.startswith("supervised: 1 network, ")
    assert "4 steps are 2.7 passes over the labeled images; unlabeled ones are not looked at" in steps


def test_outside_a_repository_there_is_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise FileNotFoundError("git")

    monkeypatch.setattr("peerseg.experiment.running.subprocess.run", missing)
    assert commit() is None


def test_a_repository_of_somebody_else_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b.c"]
    module = tmp_path / "running.py"
    module.write_text("")
    monkeypatch.setattr(running, "__file__", str(module))
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "commit", "-q", "--allow-empty", "-m", "theirs"], check=True)
    assert commit() is None

    subprocess.run([*git, "add", "running.py"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "ours"], check=True)
    found = commit()
    assert found is not None
    assert re.fullmatch(r"[0-9a-f]{40}", found)
