"""Every method in real runs: resumed to the same bits, the same with its seed, unlike every other, better than chance."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from conftest import TINY
from peerseg.experiment import running
from peerseg.experiment.results import metrics_of
from peerseg.experiment.running import resume, start
from peerseg.experiment.settings import Settings, settings_of
from peerseg.experiment.tables import METHODS
from peerseg.training import loop

COUNTS = {"ncps": 2, "ncps-cutmix": 2, "gct": 2}
# In four steps no network is as sure as these methods ask for.
LENIENT: dict[str, dict[str, Any]] = {
    "cutmix-seg": {"method.confidence": 0.2},
    "reco": {"method.confidence": 0.2, "method.valid": 0.2},
    "fixmatch": {"method.threshold": 0.2},
    "unimatch": {"method.threshold": 0.2},
}
ROWS = sorted(METHODS)
SMALL = TINY | {"data.size": 40, "loader.crop": 32, "evaluation.every": 2, "method.ramp": 0.0}


def small(name: str, **more: Any) -> Settings:
    own: dict[str, Any] = SMALL | {"method.name": name, "method.count": COUNTS.get(name, 1)}
    if name in {"supervised", "dmt"}:
        del own["method.ramp"]
    if name == "dmt":
        own["method.rounds"] = 1
    return settings_of("demo", own | more)[0]


def lenient(name: str, **more: Any) -> Settings:
    return small(name, **LENIENT.get(name, {}), **more)


def state(run: Path) -> dict[str, torch.Tensor]:
    """All that the last checkpoint holds of the method: networks, teachers, heads."""
    last = sorted((run / "checkpoints").glob("last-*"))[-1]
    return {f"{file.stem}.{k}": v for file in sorted(last.glob("*.safetensors")) for k, v in load_file(file).items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("methods")
    return {name: start(lenient(name), folder / name).path for name in ROWS}


@pytest.mark.parametrize("name", ROWS)
def test_a_run_stopped_halfway_ends_with_the_same_bits(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    class StopError(Exception):
        pass

    learn = loop._learn

    def stop(task: Any, record: Any, batch: Any, clock: Any) -> None:
        if clock.step == 2 and record._run.path == tmp_path / "run":
            raise StopError
        learn(task, record, batch, clock)

    with monkeypatch.context() as patched:
        patched.setattr(loop, "_learn", stop)
        with pytest.raises(StopError):
            start(lenient(name), tmp_path / "run")
    resume(tmp_path / "run")
    assert same(state(tmp_path / "run"), state(runs[name]))


def test_no_two_methods_end_with_the_same_weights(runs: dict[str, Path]) -> None:
    first = {name: state(run)["network1.stem.0.weight"] for name, run in runs.items()}
    for k, one in enumerate(ROWS):
        for other in ROWS[k + 1 :]:
            assert not torch.equal(first[one], first[other]), (one, other)


@pytest.mark.parametrize("name", ROWS)
def test_another_seed_ends_with_other_weights(runs: dict[str, Path], tmp_path: Path, name: str) -> None:
    assert not same(state(start(lenient(name, seed=1), tmp_path / "run").path), state(runs[name]))


@pytest.mark.parametrize("name", ROWS)
def test_a_short_run_beats_chance(tmp_path: Path, name: str) -> None:
    """Six classes: one answer everywhere has less than 15 percent."""
    more: dict[str, Any] = {"data.count": 40, "data.labeled": 12, "data.val": 6, "network.width": 12, "loader.batch": 4}
    steps = 40 if name in {"dmt", "gct"} else 80  # DMT trains three networks, and GCT's detector is large
    run = start(small(name, **more, **{"steps": steps, "evaluation.every": steps}), tmp_path / "run")
    scores = metrics_of(run)
    found = max(score["miou"] or 0.0 for score in scores.values())
    assert found > 30, scores
    assert running.finished(run.path, steps)
