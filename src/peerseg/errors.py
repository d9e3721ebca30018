"""The errors a user can mend: one sentence with what was wrong, what was expected and what to do."""

import difflib
import math
import shlex
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class PeersegError(Exception):
    """A mistake the user can mend; the command line prints it as one line and exits with 2."""


class StoppedError(Exception):
    """Training was asked to stop (a signal), has saved, and can be resumed.

    Args:
        signal: The number of the signal that asked.
        run: The run folder to resume.
    """

    def __init__(self, signal: int, run: str) -> None:
        super().__init__(f"stopped and saved; go on with: {resume_command(run)}")
        self.signal = signal


def resume_command(run: object) -> str:
    """What to type to go on with a run, as a shell takes it.

    Args:
        run: The run folder.

    Returns:
        The command.
    """
    return f"peerseg train --resume {shlex.quote(str(run))}"


def nearest(name: str, known: Iterable[str]) -> str:
    """The half sentence that helps after a misspelled name.

    Args:
        name: What was given.
        known: The names that exist.

    Returns:
        ``"did you mean 'x'?"`` where something is near, otherwise the list of the known names.
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


def check_between(name: str, value: float, low: float, high: float = math.inf) -> None:
    """Refuse a number that no setting of this name can have.

    Args:
        name: The setting as the user wrote it.
        value: What was given.
        low: Least value.
        high: Greatest value.
    """
    if not low <= value <= high:
        wanted = f"at least {low}" if high == math.inf else f"from {low} to {high}"
        raise PeersegError(f"{name} is {value!r}, expected a number {wanted}")


@contextmanager
def named(file: str) -> Iterator[None]:
    """Say which file an error is about.

    Args:
        file: What a message calls it.
    """
    try:
        yield
    except PeersegError as error:
        if file in str(error):
            raise
        raise PeersegError(f"{file!r}: {error}") from error
