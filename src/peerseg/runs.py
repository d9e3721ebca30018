"""The run folder: what a training leaves on disk, and the rules that keep it whole.

``config.yaml`` exists before anything slow; rows are appended one by one and carry their step, so that a resumed run can
drop what came after its checkpoint. Nothing here knows torch.
"""

import csv
import errno
import fcntl
import io
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from peerseg.errors import PeersegError, resume_command

Row: TypeAlias = Mapping[str, "str | int | float | None"]

CONFIG = "config.yaml"
LOSSES = "losses.csv"
METRICS = "metrics.csv"


class RunFolder:
    """One run on disk.

    Args:
        path: The folder; ``create`` makes it, ``open`` expects it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: str | Path, settings: Mapping[str, Any]) -> "RunFolder":
        """Make the folder and write its settings, before anything slow.

        Args:
            path: Where; it must not hold a run yet.
            settings: The resolved settings, written as ``config.yaml``.

        Returns:
            The new run folder.
        """
        run = cls(Path(path))
        if (run.path / CONFIG).exists():
            raise PeersegError(
                f"{str(path)!r} already holds a run; go on with `{resume_command(path)}` or choose another --out"
            )
        if run.path.exists() and (not run.path.is_dir() or any(_others(run.path))):
            raise PeersegError(
                f"{str(path)!r} is not empty and no run; expected a new or empty folder, choose another --out"
            )
        with disk_errors(run.path):
            run.path.mkdir(parents=True, exist_ok=True)
            write_text(run.path / CONFIG, yaml.safe_dump(dict(settings), sort_keys=False))
        return run

    @classmethod
    def open(cls, path: str | Path) -> "RunFolder":
        """Open an existing run.

        Args:
            path: A folder that ``peerseg train`` wrote.

        Returns:
            The run folder.
        """
        if not (Path(path) / CONFIG).is_file():
            raise PeersegError(
                f"{str(path)!r} is no run folder: it has no {CONFIG}; give the folder that `peerseg train` wrote"
            )
        return cls(Path(path))

    def discard(self) -> None:
        """Remove a run that never began: no checkpoint and no row of losses is there."""
        if {found.name for found in self.path.iterdir()} <= {CONFIG, "environment.json", "lock", "tensorboard"}:
            shutil.rmtree(self.path)

    def read_json(self, name: str) -> dict[str, Any]:
        """Read a small fact file.

        Args:
            name: The file's name in the folder.

        Returns:
            Its facts; none where the file does not exist yet.
        """
        path = self.path / name
        facts: dict[str, Any] = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
        return facts

    def settings(self) -> dict[str, Any]:
        """The settings the run was started with, as plain data."""
        try:
            settings = yaml.safe_load((self.path / CONFIG).read_text(encoding="utf8"))
        except yaml.YAMLError:
            settings = None
        if not isinstance(settings, dict):
            raise PeersegError(
                f"{str(self.path / CONFIG)!r} holds no settings; it was changed by hand: start a new run"
            )
        return settings

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for this process; a second process is refused. The lock dies with the process, however it dies."""
        # lockf, not flock: loader workers are forked and must not keep the lock of a parent that was killed.
        with (self.path / "lock").open("w") as file:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise PeersegError(
                    f"{str(self.path)!r} is in use by another process; wait for it, or stop it before resuming"
                ) from error
            yield

    def append(self, name: str, rows: Sequence[Row]) -> None:
        """Add rows to a table at once; the first row of a table decides its columns.

        Args:
            name: ``LOSSES`` or ``METRICS``.
            rows: All with the same keys, ``step`` among them.
        """
        path = self.path / name
        columns = list(rows[0])
        before = _columns(path)
        if before and before != columns:
            raise PeersegError(
                f"{str(path)!r} has the columns {before}, got {columns}: yield the same losses in every step"
            )
        with disk_errors(path), path.open("a", newline="", encoding="utf8") as file:
            file.write(_table(rows, header=file.tell() == 0))

    def rows(self, name: str) -> list[dict[str, str]]:
        """The whole rows of a table; a line cut short by a kill is left out.

        Args:
            name: ``LOSSES`` or ``METRICS``.

        Returns:
            One mapping a row, values as text; empty where the table does not exist yet.
        """
        path = self.path / name
        if not path.exists():
            return []
        text = path.read_text(encoding="utf8")
        lines = text[: text.rfind("\n") + 1].splitlines()
        table = csv.DictReader(lines)
        return [row for row in table if None not in row.values() and None not in row]

    def drop_after(self, step: int) -> None:
        """Drop the rows of steps that the resumed run will do again.

        Args:
            step: The last step whose rows stay.
        """
        for name in (LOSSES, METRICS):
            if (self.path / name).exists():
                kept = [row for row in self.rows(name) if int(row["step"]) <= step]
                with disk_errors(self.path / name):
                    write_text(self.path / name, _table(kept))

    def write_json(self, name: str, value: object) -> None:
        """Write a small fact file, whole or not at all.

        Args:
            name: The file's name in the folder.
            value: Plain data.
        """
        with disk_errors(self.path / name):
            write_text(self.path / name, json.dumps(value, indent=2) + "\n")


def _columns(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf8") as file:
        return next(csv.reader(file), [])


def _others(path: Path) -> list[Path]:
    """What a folder holds besides the leftovers of a run that was killed before its settings were written."""
    return [found for found in path.iterdir() if not found.name.startswith(f".{CONFIG}.")]


def _table(rows: Sequence[Row], *, header: bool = True) -> str:
    if not rows:
        return ""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, fieldnames=list(rows[0]), lineterminator="\n")
    if header:
        writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def write_text(path: Path, text: str) -> None:
    """Write a file so that a reader finds the old one or the new one, never a half.

    Args:
        path: The file.
        text: Its whole content.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with temporary.open("w", encoding="utf8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full disk, a quota or a missing permission into one sentence that names the path.

    Args:
        path: What is being written.
    """
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise PeersegError(f"no space left to write {str(path)!r}; free some, then resume the run") from error
        raise PeersegError(
            f"cannot write {str(path)!r}: {error.strerror or error}; choose a folder you may write to"
        ) from error


def new_name(parent: Path, name: str) -> Path:
    """The first free folder name: ``name``, ``name-2``, ``name-3`` ...

    Args:
        parent: Where runs lie.
        name: What the run would like to be called.

    Returns:
        A path that does not exist.
    """
    candidates = (parent / (name if k == 1 else f"{name}-{k}") for k in range(1, 10_000))
    return next(path for path in candidates if not path.exists())
