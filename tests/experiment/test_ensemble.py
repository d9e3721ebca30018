"""A trained run as something that answers, from its folder alone."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

import peerseg
from conftest import TINY
from peerseg.data import Shapes
from peerseg.errors import PeersegError
from peerseg.experiment.ensemble import Ensemble
from peerseg.experiment.running import start
from peerseg.experiment.settings import settings_of
from peerseg.inference import vote
from peerseg.networks import SmallNetwork
from peerseg.placement import OneProcess


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    overrides = TINY | {"evaluation.window": 16, "evaluation.best": "net2"}
    return start(settings_of("demo", overrides)[0], tmp_path_factory.mktemp("runs") / "tiny").path


@pytest.fixture
def copy(run: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(run, tmp_path / "copy"))


def test_a_run_brings_its_classes_votes_and_protocol(run: Path) -> None:
    ensemble = Ensemble(run, "last")

    assert ensemble.label_space == Shapes(2).label_space
    assert list(ensemble.predictors.members) == ["single", "net2", "net3"]
    assert ensemble.predictors.votes == ("single", "net2", "net3", "mc", "sv", "hv")
    assert (ensemble.vote, ensemble.protocol.window, ensemble.step) == ("net2", 16, 4)
    assert ensemble.settings.method["count"] == 3


def test_the_public_door_answers_with_the_best_checkpoint(run: Path) -> None:
    assert peerseg.load(run).step == Ensemble(run, "best").step
    assert peerseg.load(str(run), "last").step == 4


def test_labels_confidence_and_disagreement(run: Path) -> None:
    image = Shapes(3).image("scene-00001")[:37, :23]
    found = peerseg.load(run).predict(image)
    probabilities = torch.from_numpy(found.probabilities)[:, None]

    assert found.labels.shape == found.confidence.shape == found.disagreement.shape == (37, 23)
    np.testing.assert_array_equal(found.labels, vote(probabilities, "net2")[0])
    np.testing.assert_array_equal(peerseg.load(run).predict(image, vote="hv").labels, vote(probabilities, "hv")[0])
    mean = found.probabilities.mean(axis=0)
    chosen = np.take_along_axis(mean, found.labels[None].astype(np.int64), axis=0)[0]
    np.testing.assert_allclose(found.confidence, chosen, atol=1e-6)


def test_weights_come_from_the_checkpoint_and_the_data_is_not_needed(copy: Path) -> None:
    import safetensors.torch

    config = copy / "config.yaml"
    config.write_text(config.read_text().replace("count: 10", "count: 0"))
    ensemble = Ensemble(copy, "last")
    stored = safetensors.torch.load_file(copy / "checkpoints" / "last-0000004" / "network2.safetensors")
    own = ensemble.predictors.members["net2"].state_dict()

    assert stored.keys() == own.keys()
    assert all(torch.equal(stored[name], own[name]) for name in own)


def test_an_unknown_checkpoint_is_refused(run: Path) -> None:
    with pytest.raises(PeersegError, match="--checkpoint is 'lats', expected 'best' or 'last'"):
        Ensemble(run, "lats")


def test_a_run_without_a_checkpoint_says_how_to_go_on(copy: Path) -> None:
    shutil.rmtree(copy / "checkpoints")
    for which in ("best", "last"):
        with pytest.raises(PeersegError, match=f"has no {which} checkpoint yet: go on with `peerseg train --resume"):
            Ensemble(copy, which)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match="is no run folder"):
        peerseg.load(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("count: 3", "count: 2", r"holds 3 networks, expected 2: set method.count to 3"),
        (
            "width: 4",
            "width: 8",
            r"does not fit: .* is \(\d+.*\) there and \(\d+.*\) here; expected the same network, classes",
        ),
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused(copy: Path, old: str, new: str, sentence: str) -> None:
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace(old, new))
    with pytest.raises(PeersegError, match=sentence):
        Ensemble(copy)


def test_a_checkpoint_of_other_classes_is_refused(copy: Path) -> None:
    import hashlib

    checkpoint = copy / "checkpoints" / "last-0000004"
    state = json.loads((checkpoint / "state.json").read_text())
    state["classes"], state["colors"] = state["classes"][:4], state["colors"][:4]
    (checkpoint / "state.json").write_text(json.dumps(state))
    manifest = json.loads((checkpoint / "manifest.json").read_text())
    manifest["state.json"] = hashlib.sha256((checkpoint / "state.json").read_bytes()).hexdigest()
    (checkpoint / "manifest.json").write_text(json.dumps(manifest))

    with pytest.raises(
        PeersegError, match=r"does not fit: 'networks.0.classifier.bias' is \(6,\) there and \(4,\) here"
    ):
        Ensemble(copy, "last")


def test_a_damaged_checkpoint_is_never_used(copy: Path) -> None:
    for path in (copy / "checkpoints").glob("best-*/network1.safetensors"):
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(PeersegError, match=r"checkpoint of this run is whole: .*network1.safetensors is not what was"):
        Ensemble(copy)


def test_networks_learn_judge_and_answer_under_what_holds_of_their_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    holds: list[bool] = []
    seen: list[bool] = []

    @contextmanager
    def running(_placement: OneProcess) -> Iterator[None]:
        holds.append(True)
        yield
        holds.clear()

    forward = SmallNetwork.encode
    monkeypatch.setattr(OneProcess, "running", running)
    monkeypatch.setattr(SmallNetwork, "encode", lambda network, x: seen.append(bool(holds)) or forward(network, x))
    run = start(settings_of("demo", TINY)[0], tmp_path / "run").path
    peerseg.load(run).predict(Shapes(3).image("scene-00001"))
    peerseg.load(run).evaluate(Shapes(3), ["scene-00002"])

    assert seen
    assert all(seen)
