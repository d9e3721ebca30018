"""The loop: seeds, records, losses that are no numbers, signals, and what it does with a damaged checkpoint."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from peerseg.data.batch import Batch
from peerseg.errors import PeersegError, StoppedError
from peerseg.experiment.running import resume, start
from peerseg.experiment.settings import Settings
from peerseg.methods import Clock, Exchange, Loss, Method, Supervised, Wants
from peerseg.placement import single
from peerseg.runs import RunFolder

Tiny = Callable[..., Settings]


def weights(run: Path) -> dict[str, torch.Tensor]:
    """The final weights of every network of a run."""
    last = sorted((run / "checkpoints").glob("last-*"))[-1]
    return {f"{file.stem}.{k}": v for file in sorted(last.glob("network*")) for k, v in load_file(file).items()}


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """Whether two sets of weights are equal bit for bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from conftest import TINY
    from peerseg.experiment.settings import settings_of

    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("runs") / "reference"
    start(settings_of("demo", TINY)[0], path)
    return path


def test_a_run_leaves_what_the_contract_names(reference: Path) -> None:
    names = {path.name for path in reference.iterdir()}
    assert names >= {"config.yaml", "environment.json", "losses.csv", "metrics.csv", "checkpoints", "tensorboard"}
    run = RunFolder.open(reference)
    assert [row["step"] for row in run.rows("losses.csv")] == ["4"]
    assert {"cross1", "supervised3", "rate"} <= set(run.rows("losses.csv")[0])
    votes = ["single", "net2", "net3", "mc", "sv", "hv"]
    assert [(row["step"], row["vote"]) for row in run.rows("metrics.csv")] == [(s, v) for s in "24" for v in votes]


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(
    tiny: Tiny, reference: Path, tmp_path: Path
) -> None:
    start(tiny({"loader.workers": 2}), tmp_path / "again")
    assert same(weights(tmp_path / "again"), weights(reference))
    start(tiny({"seed": 1}), tmp_path / "other")
    assert not same(weights(tmp_path / "other"), weights(reference))


class Broken(Supervised):
    """Supervised training whose loss stops being a number at step 3."""

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        for loss in super().losses(batch, exchange, clock):
            yield Loss(loss.name, loss.value * (float("nan") if clock.step == 2 else 1.0))


def test_a_loss_that_is_no_number_stops_and_names_step_and_files(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(
        PeersegError, match=r"'supervised1' is nan at step 3, from the files 'scene-0000.*checkpoint before"
    ):
        start(tiny({"method.name": f"{__name__}:Broken"}), tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "checkpoints").glob("last-*")] == ["last-0000002"]


class Exploding(Supervised):
    """Supervised training whose last step before an evaluation leaves weights that are no numbers."""

    def after_step(self, clock: Clock) -> None:
        if clock.step == 3:
            with torch.no_grad():
                next(self.parameters()).fill_(float("inf"))


def test_weights_that_are_no_numbers_are_never_saved(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"the weights are no numbers after step 4, last learned from .*scene-0000"):
        start(tiny({"method.name": f"{__name__}:Exploding"}), tmp_path / "run")
    assert [path.name for path in (tmp_path / "run" / "checkpoints").glob("last-*")] == ["last-0000002"]


class Interrupted(Supervised):
    """Supervised training that is asked to stop in the middle of step 3."""

    number = signal.SIGTERM

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        for loss in super().losses(batch, exchange, clock):
            if clock.step == 2:
                os.kill(os.getpid(), self.number)
                os.kill(os.getpid(), self.number)  # a second request is harmless
                for worker in multiprocessing.active_children():  # a request goes to the whole group
                    os.kill(worker.pid or 0, self.number)
            yield loss


class InterruptedByHand(Interrupted):
    """The same by Ctrl-C."""

    number = signal.SIGINT


@pytest.mark.parametrize("name", ["Interrupted", "InterruptedByHand"])
def test_a_request_to_stop_finishes_the_step_and_saves(
    tiny: Tiny, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, whole = tmp_path / "run", tmp_path / "whole"
    settings = tiny({"method.name": f"{__name__}:{name}", "loader.workers": 1})
    with pytest.raises(StoppedError, match=f"stopped and saved; go on with: peerseg train --resume {run}") as stopped:
        start(settings, run)
    assert stopped.value.signal == globals()[name].number
    assert sorted(path.name for path in (run / "checkpoints").glob("last-*")) == ["last-0000002", "last-0000003"]
    monkeypatch.setattr(os, "kill", lambda *_: None)
    resume(run)
    start(settings, whole)
    assert same(weights(run), weights(whole))


def test_resuming_a_finished_run_says_so(reference: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (reference / "metrics.csv").read_bytes()
    resume(reference)
    assert "is finished: all 4 steps are made" in capsys.readouterr().err
    assert (reference / "metrics.csv").read_bytes() == before


def _stop_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make training die right after the checkpoint of a step."""
    from peerseg.training import loop

    save = loop._save

    def die(*arguments: Any) -> None:
        save(*arguments)
        if arguments[2] == "last" and arguments[3] == step:
            raise KeyboardInterrupt

    monkeypatch.setattr(loop, "_save", die)


def test_data_that_changed_is_not_trained_on(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        _stop_at(2, patched)
        with pytest.raises(KeyboardInterrupt):
            start(tiny(), run)
    facts = (run / "environment.json").read_text()
    (run / "environment.json").write_text(facts.replace('"split": "', '"split": "other '))
    with pytest.raises(PeersegError, match=r"the data of .* has changed: its split was other"):
        resume(run)


def test_a_run_that_never_began_leaves_no_folder(tiny: Tiny, tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match="expected multiples of 8"):
        start(tiny({"loader.crop": 17}), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_damaged_newest_checkpoint_is_named_and_the_result_is_the_same(
    tiny: Tiny, tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        _stop_at(4, patched)
        with pytest.raises(KeyboardInterrupt):
            start(tiny(), run)
    (run / "checkpoints" / "last-0000004" / "network1.safetensors").write_bytes(b"")
    resume(run)
    assert "last-0000004' is damaged" in capsys.readouterr().err
    assert same(weights(run), weights(reference))
    assert (run / "metrics.csv").read_text() == (reference / "metrics.csv").read_text()


def test_rows_after_the_resumed_step_are_dropped(
    tiny: Tiny, tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    with monkeypatch.context() as patched:
        _stop_at(2, patched)
        with pytest.raises(KeyboardInterrupt):
            start(tiny(), run)
    with (run / "losses.csv").open("a") as file:
        file.write("step,rate\n3,0.1\n3,0.1,0.")
    with (run / "metrics.csv").open("a") as file:
        file.write((reference / "metrics.csv").read_text().splitlines()[-1] + "\n7,sv")
    resume(run, {"loader.workers": 1})
    assert same(weights(run), weights(reference))
    assert (run / "metrics.csv").read_text() == (reference / "metrics.csv").read_text()


class Pushing(Method):
    """A method that gives a feature and the gradient to push through it."""

    @property
    def wants(self) -> Wants:
        return Wants(unlabeled=False)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        feature = self.network(0)(batch.images)
        yield Loss("pushed", feature, gradient=torch.ones_like(feature))


@pytest.mark.parametrize("method", ["supervised", "ncps", "ncps-cutmix"])
def test_parts_of_a_batch_add_up_to_the_loss_of_the_whole(tiny: Tiny, tmp_path: Path, method: str) -> None:
    found = []
    for parts in (1, 2):
        settings = tiny({"method.name": method, "loader.batch": 4, "loader.parts": parts, "steps": 1})
        with normalizing_nothing():
            run = start(settings, tmp_path / str(parts))
        found.append((run.rows("losses.csv")[0], weights(run.path)))
    (whole, apart), (once, twice) = zip(*found, strict=True)
    assert {name: float(value) for name, value in apart.items()} == pytest.approx(
        {name: float(value) for name, value in whole.items()}, rel=1e-5
    )
    assert all(torch.allclose(once[name], twice[name], rtol=1e-4, atol=1e-6) for name in once)


@contextmanager
def normalizing_nothing() -> Iterator[None]:
    """Without batch statistics and in exact precision a loss is the mean over its images."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(torch.nn.BatchNorm2d, "forward", lambda norm, x: x * norm.weight[:, None, None])
        patched.setattr(single, "has_bfloat16", lambda device: False)
        yield


def test_a_feature_with_its_gradient_is_pushed_through(tiny: Tiny, tmp_path: Path) -> None:
    run = start(tiny({"method.name": f"{__name__}:Pushing", "method.count": 1}), tmp_path / "run")
    assert set(run.rows("losses.csv")[0]) == {"step", "rate"}, "a feature is no loss"
    two, four = (load_file(run.path / f"checkpoints/last-000000{k}/network1.safetensors") for k in (2, 4))
    assert not torch.equal(two["classifier.weight"], four["classifier.weight"])
