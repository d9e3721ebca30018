"""One pass of one network over one view: with a gradient to learn, or without one to label."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from peerseg.errors import PeersegError
from peerseg.methods.base import Clock, Mode
from peerseg.methods.losses import hard_labels
from peerseg.networks.base import SegmentationNetwork


@contextmanager
def drawing(device: torch.device, clock: Clock, *place: int | str) -> Iterator[None]:
    """The chance of one pass: dropout follows from the step and the place, not from what ran before.

    Args:
        device: Where the pass is made.
        clock: The step.
        place: Which network and view this is.
    """
    with _forked(device):
        torch.manual_seed(clock.seed_of(*place))
        try:
            yield
        except ValueError as error:
            if "more than 1 value per channel" not in str(error):
                raise
            raise PeersegError(
                "a batch of 1 leaves batch normalization a single value per channel in this network: set loader.batch and "
                "loader.unlabeled_batch to 2 or more"
            ) from error


def learn(network: SegmentationNetwork, images: Tensor, clock: Clock, *place: int | str) -> Tensor:
    """A pass that learns.

    Args:
        network: In training mode.
        images: (B, C, H, W).
        clock: The step.
        place: Which network and view this is.

    Returns:
        (B, classes, H, W) logits with their graph.
    """
    with drawing(images.device, clock, *place):
        logits: Tensor = network(images)
    return logits


@torch.no_grad()
def look(
    network: SegmentationNetwork,
    images: Tensor,
    clock: Clock,
    *place: int | str,
    mode: Mode,
    track: bool = True,
) -> Tensor:
    """A pass without gradient.

    Args:
        network: Which looks.
        images: (B, C, H, W).
        clock: The step.
        place: Which network and view this is; equal places draw equal dropout.
        mode: "train": batch statistics and dropout, as published; "eval": running statistics.
        track: Whether a pass in training mode updates the running statistics.

    Returns:
        (B, classes, H, W) logits.
    """
    with _mode(network, mode == "train"), statistics(network, track):
        return learn(network, images, clock, *place)


def label(
    network: SegmentationNetwork,
    images: Tensor,
    clock: Clock,
    *place: int | str,
    mode: Mode,
    threshold: float = 0.0,
    track: bool = True,
) -> Tensor:
    """A pass that labels for the peers.

    Args:
        network: Which labels.
        images: (B, C, H, W).
        clock: The step.
        place: As for ``look``.
        mode: As for ``look``.
        threshold: Pixels not surer than this cast no vote.
        track: As for ``look``.

    Returns:
        (B, H, W) uint8.
    """
    return hard_labels(look(network, images, clock, *place, mode=mode, track=track), threshold)


def _forked(device: torch.device) -> AbstractContextManager[None]:
    """Put the default generators aside: the CPU's, and that of the device whose own generator draws the dropout."""
    if device.type == "cpu":
        return torch.random.fork_rng(devices=[])
    return torch.random.fork_rng(devices=[device], device_type=device.type)


@contextmanager
def _mode(network: nn.Module, training: bool) -> Iterator[None]:
    before = network.training
    network.train(training)
    try:
        yield
    finally:
        network.train(before)


@contextmanager
def statistics(network: nn.Module, track: bool) -> Iterator[None]:
    """Running statistics that a pass in training mode updates, or leaves alone.

    Args:
        network: Whose.
        track: Whether to update them.
    """
    norms = [module for module in network.modules() if isinstance(module, _BatchNorm) and module.track_running_stats]
    if network.training and not track:
        for norm in norms:
            norm.track_running_stats = False
    try:
        yield
    finally:
        for norm in norms:
            norm.track_running_stats = True
