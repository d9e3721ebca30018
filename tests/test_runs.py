"""The run folder: made once, whole at any moment, and held by one process."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from peerseg.errors import PeersegError
from peerseg.runs import CONFIG, LOSSES, METRICS, RunFolder, disk_errors, new_name, write_text

HOLD = """
import sys
from peerseg.errors import PeersegError
from peerseg.runs import RunFolder
try:
    with RunFolder.open(sys.argv[1]).lock():
        print("held", flush=True)
        sys.stdin.read()
except PeersegError as error:
    print(error)
"""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return RunFolder.create(tmp_path / "run", {"seed": 3, "data": {"name": "shapes"}})


def test_settings_come_back_as_they_were(run: RunFolder) -> None:
    assert RunFolder.open(run.path).settings() == {"seed": 3, "data": {"name": "shapes"}}


def test_an_empty_folder_can_become_a_run(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    assert RunFolder.create(tmp_path / "run", {"seed": 0}).settings() == {"seed": 0}


def test_a_folder_that_holds_a_run_is_refused(run: RunFolder) -> None:
    with pytest.raises(PeersegError, match="already holds a run; go on with `peerseg train --resume"):
        RunFolder.create(run.path, {"seed": 4})
    assert run.settings()["seed"] == 3


def test_a_folder_with_other_files_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(PeersegError, match=r"is not empty and no run; .* choose another --out"):
            RunFolder.create(path, {})
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_what_a_kill_left_of_the_settings_is_in_nobody_s_way(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / f".{CONFIG}.123").write_text("see")

    assert RunFolder.create(tmp_path / "run", {"seed": 0}).settings() == {"seed": 0}


def test_only_a_run_that_never_began_is_discarded(run: RunFolder) -> None:
    run.append(LOSSES, [{"step": 1, "rate": 0.5}])
    run.discard()
    assert run.settings()["seed"] == 3

    (run.path / LOSSES).unlink()
    with run.lock():
        pass
    run.write_json("environment.json", {})
    run.discard()
    assert not run.path.exists()


def test_a_run_below_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PeersegError, match=r"cannot write .*file/run': .*; choose a folder you may write to"):
        RunFolder.create(tmp_path / "file" / "run", {})


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(PeersegError, match=r"is no run folder: it has no config.yaml; give the folder"):
            RunFolder.open(path)


@pytest.mark.parametrize("text", ["", "- a list\n", "data: [never closed\n"])
def test_settings_changed_by_hand_are_refused(run: RunFolder, text: str) -> None:
    (run.path / CONFIG).write_text(text)
    with pytest.raises(PeersegError, match="holds no settings; it was changed by hand"):
        run.settings()


def test_rows_come_back_as_text(run: RunFolder) -> None:
    run.append(METRICS, [{"step": 1, "vote": "sv", "miou": 12.5}, {"step": 1, "vote": "hv", "miou": None}])
    run.append(METRICS, [{"step": 2, "vote": "sv", "miou": 0.1 + 0.2}])

    assert run.rows(METRICS) == [
        {"step": "1", "vote": "sv", "miou": "12.5"},
        {"step": "1", "vote": "hv", "miou": ""},
        {"step": "2", "vote": "sv", "miou": "0.30000000000000004"},
    ]


def test_other_columns_than_the_table_s_are_refused(run: RunFolder) -> None:
    run.append(LOSSES, [{"step": 1, "cross": 0.5}])
    with pytest.raises(PeersegError, match=r"losses.csv' has the columns \['step', 'cross'\], got \['step', 'own'\]"):
        run.append(LOSSES, [{"step": 2, "own": 0.5}])
    assert [row["step"] for row in run.rows(LOSSES)] == ["1"]


def test_a_missing_table_has_no_rows(run: RunFolder) -> None:
    assert run.rows(LOSSES) == []


@pytest.mark.parametrize("rest", ["2,0.", "2,0.25", "2", "2,"])
def test_a_line_cut_short_is_left_out(run: RunFolder, rest: str) -> None:
    run.append(LOSSES, [{"step": 1, "rate": 0.5}])
    with (run.path / LOSSES).open("a") as file:
        file.write(rest)

    assert run.rows(LOSSES) == [{"step": "1", "rate": "0.5"}]


def test_rows_after_a_step_are_dropped_from_both_tables(run: RunFolder) -> None:
    run.append(LOSSES, [{"step": step, "rate": 0.5} for step in (1, 2, 3)])
    run.append(METRICS, [{"step": 3, "vote": "sv"}])
    with (run.path / LOSSES).open("a") as file:
        file.write("4,0.")
    run.drop_after(2)
    run.append(LOSSES, [{"step": 3, "rate": 0.25}])

    assert [row["step"] for row in run.rows(LOSSES)] == ["1", "2", "3"]
    assert run.rows(LOSSES)[-1]["rate"] == "0.25"
    assert run.rows(METRICS) == []
    run.append(METRICS, [{"step": 3, "vote": "hv"}])
    assert run.rows(METRICS) == [{"step": "3", "vote": "hv"}]


def test_fact_files_are_json(run: RunFolder) -> None:
    assert run.read_json("environment.json") == {}
    run.write_json("environment.json", {"device": "cpu"})
    assert json.loads((run.path / "environment.json").read_text()) == {"device": "cpu"}
    assert run.read_json("environment.json") == {"device": "cpu"}


def test_a_write_that_fails_leaves_the_old_file(run: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    run.write_json("environment.json", {"device": "cpu"})
    monkeypatch.setattr("peerseg.runs.os.fsync", full)
    with pytest.raises(PeersegError, match=r"no space left to write .*environment.json'; free some"):
        run.write_json("environment.json", {"device": "another"})

    assert json.loads((run.path / "environment.json").read_text()) == {"device": "cpu"}


def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path) -> None:
    for text in ("one", "two"):
        write_text(tmp_path / "file", text)

    assert (tmp_path / "file").read_text() == "two"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_a_full_disk_is_one_sentence(number: int) -> None:
    with (
        pytest.raises(PeersegError, match="no space left to write 'there'; free some, then resume the run"),
        disk_errors(Path("there")),
    ):
        raise OSError(number, "full")


@pytest.mark.parametrize("error", [PermissionError(errno.EACCES, "Permission denied"), OSError("Permission denied")])
def test_every_other_disk_error_keeps_its_reason(error: OSError) -> None:
    with (
        pytest.raises(PeersegError, match="cannot write 'there': Permission denied; choose"),
        disk_errors(Path("there")),
    ):
        raise error


def test_names_that_are_taken_are_counted_up(tmp_path: Path) -> None:
    assert new_name(tmp_path, "demo") == tmp_path / "demo"
    for taken in ("demo", "demo-2"):
        (tmp_path / taken).mkdir()
    assert new_name(tmp_path, "demo") == tmp_path / "demo-3"


def test_a_second_process_is_refused(run: RunFolder) -> None:
    with run.lock():
        second = subprocess.run(
            [sys.executable, "-c", HOLD, run.path], input="", capture_output=True, text=True, check=True
        )

    assert "is in use by another process; wait for it, or stop it before resuming" in second.stdout


def test_a_killed_process_no_longer_holds_the_run(run: RunFolder) -> None:
    command = [sys.executable, "-c", HOLD, str(run.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(PeersegError, match="is in use by another process"), run.lock():
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()

    with run.lock():
        pass
