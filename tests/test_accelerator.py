"""On an accelerator: the same bits in every run, stopped or not, and answers that are those it was judged by."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from machine import AS_IT_IS
from peerseg.experiment.tables import METHODS

TINY = ["--data.count", "40", "--data.labeled", "8", "--data.val", "8", "--steps", "20", "--evaluation.every", "10"]
LITE = ["--network.encoder", "efficientnet_lite0", "--network.weights", "imagenet"]
NETWORKS = {
    "small": [],
    "library": ["--network.name", "library", "--network.architecture", "DeepLabV3Plus", *LITE],
    "paper": ["--network.name", "deeplabv3plus", "--network.encoder", "resnet18", "--network.weights", "null"],
}


def _peerseg(*words: str) -> str:
    command = [sys.executable, "-m", "peerseg", *words]
    return subprocess.run(command, env=AS_IT_IS, capture_output=True, text=True, check=True).stdout


def _weights(run: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in (run / "checkpoints" / "last-0000020").glob("*.safetensors")}


@pytest.fixture(scope="module")
def _accelerated() -> None:
    asked = [sys.executable, "-c", "import torch; print(torch.cuda.is_available())"]
    if subprocess.run(asked, env=AS_IT_IS, capture_output=True, text=True, check=True).stdout != "True\n":
        pytest.skip("this machine has no CUDA device")


@pytest.mark.long
@pytest.mark.usefixtures("_accelerated")
@pytest.mark.parametrize("method", [["ncps-cutmix"], ["ncps", "--method.hardest", "500"]])
@pytest.mark.parametrize("network", NETWORKS)
def test_a_run_ends_with_the_same_bits_stopped_or_not(tmp_path: Path, network: str, method: list[str]) -> None:
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    settings = [*TINY, *NETWORKS[network], "--method.name", *method]
    _peerseg("train", "demo", "--out", str(whole), *settings)
    _peerseg("train", "demo", "--out", str(broken), *settings)
    assert _weights(broken) == _weights(whole)
    for checkpoint in (broken / "checkpoints").glob("*-0000020"):
        shutil.rmtree(checkpoint)
    _peerseg("train", "--resume", str(broken), "--loader.workers", "2")
    assert _weights(broken) == _weights(whole)
    assert (broken / "metrics.csv").read_bytes() == (whole / "metrics.csv").read_bytes()

    scores = json.loads(_peerseg("evaluate", str(whole), "--checkpoint", "last", "--json"))
    rows = [line.split(",") for line in (whole / "metrics.csv").read_text().splitlines()]
    assert {vote: float(miou) for step, vote, miou, *_ in rows[1:] if step == "20"} == scores["miou"]


@pytest.mark.long
@pytest.mark.usefixtures("_accelerated")
@pytest.mark.parametrize("method", sorted(METHODS.keys() - {"ncps", "ncps-cutmix"}))
def test_every_method_learns_there_with_the_same_bits_in_every_run(tmp_path: Path, method: str) -> None:
    more = ["--method.rounds", "1"] if method == "dmt" else []
    more += ["--method.adversarial", "1"] if method == "cct" else []
    settings = [*TINY, "--method.name", method, "--method.count", "2", *more]
    for name in ("one", "other"):
        _peerseg("train", "demo", "--out", str(tmp_path / name), *settings)
    assert _weights(tmp_path / "one") == _weights(tmp_path / "other")
