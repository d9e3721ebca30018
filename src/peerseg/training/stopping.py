"""SIGTERM and Ctrl-C ask; the loop answers after the step."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """Collect the signals that ask to stop, instead of dying of them.

    Yields:
        The signals so far; empty while nobody asked.
    """
    asked: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        asked.append(number)
        print("\nstopping after this step, and its evaluation if one is due", file=sys.stderr, flush=True)

    before = {number: signal.signal(number, note) for number in SIGNALS}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
