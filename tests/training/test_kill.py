"""Killed with SIGKILL at any moment and resumed, a run ends with the weights of one that never stopped."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from conftest import TINY
from killing import POINTS
from peerseg.errors import PeersegError
from peerseg.experiment.running import resume, start
from peerseg.experiment.settings import settings_of
from peerseg.runs import RunFolder
from peerseg.training.checkpoint import find

TESTS = Path(__file__).parents[1]
QUIET = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(TESTS)}


def _bytes(run: Path) -> dict[str, bytes]:
    found = find(run / "checkpoints", "last")
    assert found is not None
    files = {file.name: file.read_bytes() for file in found.path.glob("*.safetensors")}
    return files | {name: (run / name).read_bytes() for name in ("metrics.csv", "losses.csv")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("whole") / "run"
    start(settings_of("demo", TINY)[0], path)
    return _bytes(path)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, str(TESTS / "killing.py"), str(folder)], check=True, env=QUIET, capture_output=True)
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_run_ends_as_if_nothing_had_happened(killed: Path, whole: dict[str, bytes], point: str) -> None:
    resume(killed / point, {"loader.workers": 1 if point.endswith("renamed") else 0})
    assert _bytes(killed / point) == whole
    assert not list((killed / point / "checkpoints").glob(".*"))


def test_a_second_process_on_the_same_run_is_refused(tmp_path: Path) -> None:
    run = RunFolder.create(tmp_path / "run", {})
    hold = (
        "import sys, time; from peerseg.runs import RunFolder\n"
        "with RunFolder.open(sys.argv[1]).lock(): print('held', flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(run.path)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        with pytest.raises(PeersegError, match="is in use by another process"), run.lock():
            pass
        other.kill()
    with run.lock():
        pass


LIMITED = """
import resource, signal, sys
from pathlib import Path
import torch
from conftest import TINY
from peerseg.cli import main
torch.set_num_threads(1)
from peerseg.training import checkpoint
save = checkpoint.save
def limited(folder, which, method, state, optimizer=None):
    if (which, state["step"]) == ("last", 4):
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
    return save(folder, which, method, state, optimizer)
checkpoint.save = limited
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
settings = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]
sys.exit(main(["train", "demo", "--out", sys.argv[1], *settings]))
"""


def test_a_disk_that_is_full_while_saving_ends_in_one_line_and_a_whole_checkpoint(
    tmp_path: Path, whole: dict[str, bytes]
) -> None:
    run = tmp_path / "run"
    ended = subprocess.run(
        [sys.executable, "-c", LIMITED, str(run)], env=QUIET, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2, ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("peerseg: no space left to write")
    found = find(run / "checkpoints", "last")
    assert found is not None
    assert found.state["step"] == 2
    resume(run)
    assert _bytes(run) == whole


@pytest.mark.long
def test_twenty_kills_at_random_moments(tmp_path: Path) -> None:
    settings = TINY | {"steps": 400, "evaluation.every": 7, "loader.workers": 0}
    start(settings_of("demo", settings)[0], tmp_path / "whole")
    run, chance = tmp_path / "run", random.Random(0)
    RunFolder.create(run, settings_of("demo", settings)[0].as_dict())
    for kill in range(20):
        command = ["-m", "peerseg", "train", "--resume", str(run), "--loader.workers", str(kill % 3)]
        with subprocess.Popen(
            [sys.executable, *command], env=QUIET, stderr=subprocess.PIPE, start_new_session=True
        ) as child:
            assert child.stderr is not None
            child.stderr.readline()
            time.sleep(chance.uniform(0, 2.5))
            os.killpg(child.pid, signal.SIGKILL)
    resume(run)
    assert _bytes(run) == _bytes(tmp_path / "whole")
