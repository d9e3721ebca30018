"""The endless stream of batches, made ahead of time by other processes."""

import os
import signal
from collections.abc import Iterator

import torch
from torch.utils.data import DataLoader

from peerseg.data.batch import Batch
from peerseg.data.loading import BatchStream
from peerseg.errors import PeersegError


def stream_batches(stream: BatchStream, start: int, stop: int, *, workers: int = 0) -> Iterator[Batch]:
    """The batches of some steps in order, made by other processes ahead of time.

    Args:
        stream: Where batches come from.
        start: First step.
        stop: One past the last step.
        workers: How many processes, at most one a core; the batches do not depend on it.

    Yields:
        One batch a step.
    """
    # The loader's own generator is given so that it leaves torch's default one alone.
    loader: DataLoader[Batch | Exception] = DataLoader(
        stream,
        batch_size=None,
        sampler=range(start, stop),
        num_workers=min(workers, os.cpu_count() or 1),
        worker_init_fn=_ignore_stops,
        generator=torch.Generator(),
    )
    for batch in _alive(loader):
        if isinstance(batch, Exception):
            raise batch
        yield batch


def _alive(loader: "DataLoader[Batch | Exception]") -> Iterator["Batch | Exception"]:
    try:
        yield from loader
    except RuntimeError as error:
        if "DataLoader worker" not in str(error):
            raise
        raise PeersegError(
            "a process that makes batches was killed, probably for lack of memory: set loader.workers, loader.batch or "
            "loader.crop lower; a run that has a checkpoint goes on with --resume"
        ) from None


def _ignore_stops(_worker: int) -> None:
    """A request to stop goes to the whole group of processes; the batches of the last step are still needed."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
