"""Checkpoints: whole or not at all, and damage is found, named and stepped over."""

import errno
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from oracle import networks
from peerseg.errors import PeersegError
from peerseg.methods import Method, Supervised
from peerseg.training import checkpoint
from peerseg.training.optimize import Optimization


@pytest.fixture
def method() -> Method:
    return Supervised(networks(2))


def _save(folder: Path, method: Method, step: int, which: checkpoint.Which = "last") -> Path:
    return checkpoint.save(folder, which, method, {"step": step, "steps": 9}, {"sgd": {"state": {}}})


def test_what_is_saved_is_loaded(tmp_path: Path, method: Method) -> None:
    optimization = Optimization(method.parameter_groups())
    sum(parameter.sum() for parameter in method.parameters()).backward()
    optimization.step(_clock())
    path = checkpoint.save(tmp_path, "last", method, {"step": 3, "steps": 9}, optimization.state_dict())
    assert sorted(file.name for file in path.iterdir()) == [
        "manifest.json",
        "network1.safetensors",
        "network2.safetensors",
        "optimizer.pt",
        "state.json",
    ]
    other = Supervised(networks(2, dropout=0.1))
    with torch.no_grad():
        for parameter in other.parameters():
            parameter.zero_()
    checkpoint.load_method(path, other)
    for name, value in method.state_dict().items():
        assert torch.equal(other.state_dict()[name], value), name
    restored = Optimization(other.parameter_groups())
    restored.load_state_dict(checkpoint.load_optimizer(path))
    before = [group["params"] for group in optimization.state_dict()["sgd"]["param_groups"]]
    assert [group["params"] for group in restored.state_dict()["sgd"]["param_groups"]] == before
    momenta = [entry["momentum_buffer"] for entry in optimization.state_dict()["sgd"]["state"].values()]
    restored_momenta = [entry["momentum_buffer"] for entry in restored.state_dict()["sgd"]["state"].values()]
    assert all(torch.equal(one, two) for one, two in zip(momenta, restored_momenta, strict=True))
    found = checkpoint.find(tmp_path, "last")
    assert found is not None
    assert found.state["step"] == 3


def _clock() -> "checkpoint.Any":
    from peerseg.methods import Clock

    return Clock(0, 0, 9)


def test_two_last_and_one_best_are_kept(tmp_path: Path, method: Method) -> None:
    for step in (1, 2, 3):
        _save(tmp_path, method, step)
        _save(tmp_path, method, step, "best")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["best-0000003", "last-0000002", "last-0000003"]


def test_files_are_readable_by_others(tmp_path: Path, method: Method) -> None:
    path = _save(tmp_path, method, 1)
    modes = {stat.S_IMODE(file.stat().st_mode) & 0o044 for file in path.iterdir()}
    assert modes == {0o044}


def _truncate(path: Path) -> None:
    file = path / "network1.safetensors"
    file.write_bytes(file.read_bytes()[:-10])


def _empty(path: Path) -> None:
    (path / "optimizer.pt").write_bytes(b"")


def _flip(path: Path) -> None:
    file = path / "network2.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))


def _no_manifest(path: Path) -> None:
    (path / "manifest.json").unlink()


def _no_file(path: Path) -> None:
    (path / "state.json").unlink()


DAMAGES = {
    _truncate: r"network1\.safetensors is not what was written",
    _empty: r"optimizer\.pt is not what was written",
    _flip: r"network2\.safetensors is not what was written",
    _no_manifest: r"no readable manifest\.json",
    _no_file: r"state\.json is missing",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_newest_is_named_and_the_one_before_used(
    tmp_path: Path, method: Method, damage: Callable[[Path], None]
) -> None:
    before, newest = _save(tmp_path, method, 1), _save(tmp_path, method, 2)
    damage(newest)
    found = checkpoint.find(tmp_path, "last")
    assert found is not None
    assert found.path == before
    assert len(found.damaged) == 1
    assert str(newest) in found.damaged[0]
    damage(before)
    with pytest.raises(PeersegError, match=f"no 'last' checkpoint of this run is whole.*{DAMAGES[damage]}"):
        checkpoint.find(tmp_path, "last")


def test_a_damaged_one_of_the_same_step_is_written_anew(tmp_path: Path, method: Method) -> None:
    _flip(_save(tmp_path, method, 2))
    _save(tmp_path, method, 2)
    found = checkpoint.find(tmp_path, "last")
    assert found is not None
    assert found.damaged == ()


def test_leftovers_of_a_kill_are_removed(tmp_path: Path, method: Method) -> None:
    (tmp_path / ".last-0000002").mkdir(parents=True)
    _save(tmp_path, method, 1)
    checkpoint.clean(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["last-0000001"]


def test_what_is_newer_than_the_step_a_run_goes_on_from_is_removed(tmp_path: Path, method: Method) -> None:
    _save(tmp_path, method, 1)
    _save(tmp_path, method, 2)
    checkpoint.save(tmp_path, "best", method, {"step": 3, "steps": 9})
    checkpoint.clean(tmp_path, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["last-0000001"]


def test_nothing_saved_is_no_error(tmp_path: Path) -> None:
    assert checkpoint.find(tmp_path / "checkpoints", "last") is None


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, "no space left to write .*last-0000002"),
        (errno.EACCES, "cannot write .*last-0000002.: Permission denied"),
    ],
)
def test_a_full_disk_leaves_the_checkpoint_before_whole(
    tmp_path: Path, method: Method, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    before = _save(tmp_path, method, 1)
    written = []

    def flush(descriptor: int) -> None:
        written.append(descriptor)
        if len(written) == 2:
            raise OSError(code, "Permission denied")

    monkeypatch.setattr(checkpoint.os, "fsync", flush)
    with pytest.raises(PeersegError, match=words):
        _save(tmp_path, method, 2)
    monkeypatch.undo()
    found = checkpoint.find(tmp_path, "last")
    assert found is not None
    assert (found.path, found.damaged) == (before, ())
    assert [path.name for path in tmp_path.iterdir()] == ["last-0000001"]


def test_another_number_of_networks_is_refused(tmp_path: Path, method: Method) -> None:
    path = _save(tmp_path, method, 1)
    with pytest.raises(PeersegError, match=r"holds 2 networks, expected 3: set method\.count to 2"):
        checkpoint.load_method(path, Supervised(networks(3)))


def test_other_classes_are_refused(tmp_path: Path, method: Method) -> None:
    path = _save(tmp_path, method, 1)
    with pytest.raises(PeersegError, match=r"'networks\.0\.classifier\.bias' is \(3,\) there and \(5,\) here"):
        checkpoint.load_method(path, Supervised(networks(2, classes=5)))


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("evil"),)  # type: ignore[return-value]


def test_an_evil_pickle_is_refused(tmp_path: Path, method: Method, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = _save(tmp_path / "run", method, 1)
    torch.save({"sgd": _Evil()}, path / "optimizer.pt")
    with pytest.raises(PeersegError, match="loading it could run code: refused"):
        checkpoint.load_optimizer(path)
    assert not (tmp_path / "evil").exists()


def test_the_state_is_plain_json(tmp_path: Path, method: Method) -> None:
    path = _save(tmp_path, method, 4)
    assert json.loads((path / "state.json").read_text()) == {"step": 4, "steps": 9}
