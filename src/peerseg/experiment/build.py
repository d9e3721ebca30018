"""From settings to the parts of one training: the only place where settings meet what they name."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from peerseg.data.dataset import SegmentationDataset, Split
from peerseg.data.inspect import Watch, color_statistics, inspect
from peerseg.data.loading import BatchStream, ViewSettings
from peerseg.data.randomness import seed_of
from peerseg.data.splits import check_disjoint
from peerseg.data.stored import StoredLabels
from peerseg.errors import PeersegError, nearest
from peerseg.experiment.plans import EvaluationPlan, LoaderPlan
from peerseg.experiment.settings import Settings
from peerseg.experiment.tables import target
from peerseg.inference.protocol import Protocol
from peerseg.methods.base import Method
from peerseg.networks.base import SegmentationNetwork
from peerseg.placement import Placement
from peerseg.training import checkpoint
from peerseg.training.loop import Task
from peerseg.training.optimize import Optimization


@dataclass(frozen=True)
class Built:
    """One training, ready to start.

    Args:
        task: What the loop needs.
        split: The data's split.
        notes: What the user should know, a sentence each.
    """

    task: Task
    split: Split
    notes: tuple[str, ...]


def build(settings: Settings, watch: Watch | None = None) -> Built:
    """Build everything a training needs, and refuse what cannot work.

    Args:
        settings: Resolved settings.
        watch: Wraps slow loops to show progress.

    Returns:
        The task and what to say of it.
    """
    loader, evaluation = LoaderPlan(**settings.loader), EvaluationPlan(**settings.evaluation)
    dataset = build_dataset(settings)
    split = dataset.split()
    check_disjoint(split)
    inspection = inspect(dataset, split, watch)
    channels = dataset.image(split.labeled[0]).shape[2]
    method = build_method(
        settings, len(dataset.label_space), channels, _colors(settings, dataset, split, channels, watch)
    )
    _check_crop(loader, method)
    stream = _stream(settings, dataset, split, method, inspection.partly)
    task = Task(
        method=method,
        stream=stream,
        optimization=Optimization(method.parameter_groups(), **settings.optimizer),
        placement=build_placement(settings),
        dataset=dataset,
        val=split.val,
        protocol=protocol_of(evaluation),
        steps=settings.steps,
        seed=settings.seed,
        every=evaluation.every,
        best=default_vote(evaluation, method),
        workers=loader.workers,
        parts=loader.parts,
        facts={
            "classes": list(dataset.label_space.names),
            "colors": [list(color) for color in dataset.label_space.colors],
            "channels": channels,
            "masks": inspection.digest(),
            "judged": inspection.pixels["val"][: len(dataset.label_space)].tolist(),
        },
    )
    return Built(task, split, (*dataset.notes, *inspection.notes))


def _colors(
    settings: Settings, dataset: SegmentationDataset, split: Split, channels: int, watch: Watch | None
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """What images are normalized by, where the networks do not bring it."""
    own = LoaderPlan(**settings.loader).normalization == "data"
    if own and "mean" not in settings.network:
        raise PeersegError(
            f"loader.normalization is 'data', but the network {settings.network['name']!r} takes no mean and std: "
            "set loader.normalization to 'network'"
        )
    if not own and channels == 3:
        return None
    return color_statistics(dataset, watch(split.labeled, "reading colors") if watch else split.labeled)


def _stream(
    settings: Settings, dataset: SegmentationDataset, split: Split, method: Method, partly: tuple[str, ...]
) -> BatchStream:
    loader, first = LoaderPlan(**settings.loader), method.network(0)
    views = ViewSettings(
        mean=tuple(first.mean.tolist()),
        std=tuple(first.std.tolist()),
        crop=loader.size,
        scales=loader.scales,
        between=loader.between,
        flip=loader.flip,
        boxes=loader.boxes,
        area=loader.area,
        mixing=loader.mixing,
        jitter=loader.strong,
        published=loader.published,
    )
    return BatchStream(
        dataset,
        split,
        views,
        method.wants,
        partly=partly,
        batch=loader.batch,
        unlabeled_batch=loader.unlabeled_count,
        parts=loader.parts,
        seed=settings.seed,
        stored=None if loader.stored is None else StoredLabels(Path(loader.stored)),
    )


def build_dataset(settings: Settings) -> SegmentationDataset:
    """Build the data set alone.

    Args:
        settings: Resolved settings.

    Returns:
        The data set.
    """
    dataset: SegmentationDataset = _made("data", settings.data)
    return dataset


def build_placement(settings: Settings) -> Placement:
    """Build where the networks live.

    Args:
        settings: Resolved settings.

    Returns:
        The placement.
    """
    placement: Placement = _made("placement", settings.placement, count=settings.method["count"])
    return placement


def build_method(
    settings: Settings,
    classes: int,
    channels: int,
    colors: tuple[tuple[float, ...], tuple[float, ...]] | None = None,
    *,
    pretrained: bool = True,
) -> Method:
    """Build the networks, each from its own seed, and the method that owns them.

    Args:
        settings: Resolved settings.
        classes: How many.
        channels: Of the images.
        colors: Mean and standard deviation of each channel; None: what the first network brings.
        pretrained: False where a checkpoint fills the networks anyway.

    Returns:
        The method.
    """
    networks: list[SegmentationNetwork] = []
    for k in range(settings.method["count"]):
        own = settings.network_of(k)
        _check_colors(own, channels)
        if "mean" in own and own["mean"] is None and colors is not None:
            own |= {"mean": colors[0], "std": colors[1]}
        if "weights" in own and not pretrained:
            own["weights"] = None
        with seeded(settings.seed, "network", k):
            networks.append(_made("network", own, classes=classes, channels=channels))
        # All networks are shown the same batch, so all normalize as the first one does.
        colors = colors or (tuple(networks[0].mean.tolist()), tuple(networks[0].std.tolist()))
        if not (torch.equal(networks[k].mean, networks[0].mean) and torch.equal(networks[k].std, networks[0].std)):
            raise PeersegError(
                f"network {k + 1} normalizes colors otherwise than network 1, but all are shown the same batch: give every network "
                "the same mean and std"
            )
    if settings.start is not None and pretrained:
        checkpoint.load_networks(checkpoint.newest(settings.start), networks)
    keywords = {key: value for key, value in settings.method.items() if key not in ("name", "count")}
    with seeded(settings.seed, "method"):
        method: Method = target("method", settings.method["name"])(networks, **keywords)
    return method


def _check_colors(network: Mapping[str, Any], channels: int) -> None:
    mean, std = network.get("mean"), network.get("std")
    if mean is None and std is None:
        return
    if mean is None or std is None:
        raise PeersegError(
            f"network.mean is {mean!r} and network.std is {std!r}, which belong together: give both or neither"
        )
    if len(mean) != channels or len(std) != channels or min(std) <= 0:
        raise PeersegError(
            f"network.mean is {list(mean)!r} and network.std is {list(std)!r}, expected {channels} numbers each, one a channel, "
            "those of std above 0"
        )


def protocol_of(plan: EvaluationPlan) -> Protocol:
    """How the plan shows images.

    Args:
        plan: The evaluation section.

    Returns:
        The protocol.
    """
    return Protocol(plan.window, plan.overlap, plan.flip, plan.scales, plan.published)


def default_vote(plan: EvaluationPlan, method: Method) -> str:
    """The vote that chooses the best checkpoint and answers by default.

    Args:
        plan: The evaluation section.
        method: Whose votes.

    Returns:
        The plan's, or "sv" where it exists, otherwise the first.
    """
    votes = method.predictors().votes
    if plan.best is not None and plan.best not in votes:
        raise PeersegError(f"evaluation.best is {plan.best!r}; {nearest(plan.best, votes)}")
    return plan.best or ("sv" if "sv" in votes else votes[0])


@contextmanager
def seeded(*place: int | str) -> Iterator[None]:
    """Torch's default generator, seeded for one place and put back afterwards.

    Args:
        place: Such as ``(seed, "network", 0)``.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed_of(*place))
        yield


def _made(section: str, settings: Mapping[str, Any], **supplied: Any) -> Any:
    keywords = {key: value for key, value in settings.items() if key != "name"}
    return target(section, settings["name"])(**supplied, **keywords)


def _check_crop(loader: LoaderPlan, method: Method) -> None:
    stride = max(method.network(k).stride for k in range(method.count))
    if any(side % stride for side in loader.size):
        nearer = [max(stride, round(side / stride) * stride) for side in loader.size]
        raise PeersegError(
            f"loader.crop is {list(loader.size)}, expected multiples of {stride} for this network, such as {nearer}"
        )
