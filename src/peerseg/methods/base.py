"""What a method is: losses one graph at a time, and all it may know of time, chance and other processes."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

import torch
from torch import Tensor, nn

from peerseg.data.batch import Batch
from peerseg.data.loading import Wants
from peerseg.data.randomness import seed_of
from peerseg.errors import PeersegError, check_between
from peerseg.networks.base import SegmentationNetwork

__all__ = ["Clock", "Exchange", "Loss", "Method", "ParameterGroup", "Predictors", "Wants"]


@dataclass(frozen=True)
class Loss:
    """One loss graph, to be back-propagated before the next is asked for.

    Args:
        name: For the record.
        value: A scalar; the loop scales and back-propagates it.
        gradient: Given: ``value`` is a feature to push this gradient through, and is not scaled again.
        completes: Networks whose gradients are final now.
    """

    name: str
    value: Tensor
    gradient: Tensor | None = None
    completes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Clock:
    """Where in training a step is; all chance in a step follows from it.

    Args:
        seed: Of the run.
        step: Counted from 0.
        steps: Of the whole training.
        part: Which part of the batch this process holds.
    """

    seed: int
    step: int
    steps: int
    part: int = 0

    def ramp(self, share: float) -> float:
        """A factor that grows evenly to 1 over the first steps and stays there.

        Args:
            share: Of all steps; 0 means no ramp.

        Returns:
            Above 0, at most 1.
        """
        return min(1.0, (self.step + 1) / (share * self.steps)) if share > 0 else 1.0

    def seed_of(self, *stream: int | str) -> int:
        """A seed for one use of chance in this step.

        Args:
            stream: What it is for.

        Returns:
            The same number whenever this step is done.
        """
        return seed_of(self.seed, self.step, self.part, *stream)

    def generator(self, *stream: int | str) -> torch.Generator:
        """A generator for one use of chance in this step.

        Args:
            stream: What it is for.

        Returns:
            A fresh generator on the CPU.
        """
        return torch.Generator().manual_seed(self.seed_of(*stream))


class Exchange(ABC):
    """All a method knows of other processes: which networks live here, and what the others answered.

    Attributes:
        members: The networks that live here.
    """

    members: Sequence[int]

    @abstractmethod
    def __call__(self, own: Mapping[int, Tensor]) -> Sequence[Tensor]:
        """Give the label maps of the networks here, get everyone's.

        Args:
            own: Network -> (B, H, W) uint8.

        Returns:
            The label maps of all networks, in network order.
        """


@dataclass(frozen=True)
class ParameterGroup:
    """Parameters that learn alike.

    Args:
        name: For messages.
        parameters: What learns.
        scale: Of the learning rate.
        kind: An optimizer by name, or None for the run's own.
        rate: A learning rate at the first step, or None for the run's own.
    """

    name: str
    parameters: tuple[nn.Parameter, ...]
    scale: float = 1.0
    kind: str | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Predictors:
    """Who answers after training, as plain data.

    Args:
        members: Networks by name, in order.
        votes: The answers that exist: each member's own, then the votes of all.
    """

    members: Mapping[str, SegmentationNetwork]
    votes: tuple[str, ...]


class Method(nn.Module, ABC):
    """A way to learn from labeled and unlabeled images. Whatever it keeps is in its ``state_dict``.

    Args:
        networks: What learns, and later answers.
    """

    def __init__(self, networks: Sequence[SegmentationNetwork]) -> None:
        super().__init__()
        self.networks = nn.ModuleList(networks)

    @property
    def count(self) -> int:
        """n, the number of networks."""
        return len(self.networks)

    def network(self, index: int) -> SegmentationNetwork:
        """One network.

        Args:
            index: Counted from 0.

        Returns:
            The network.
        """
        return cast(SegmentationNetwork, self.networks[index])

    @property
    @abstractmethod
    def wants(self) -> Wants:
        """Which views of unlabeled images a step needs."""

    @abstractmethod
    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """The losses of one step, one graph at a time; never calls ``backward``.

        Args:
            batch: What to learn from.
            exchange: The way to the other networks' labels.
            clock: The step.

        Yields:
            Losses whose sum is the step's loss.
        """

    def after_step(self, clock: Clock) -> None:
        """Update what no gradient updates; nothing here.

        Args:
            clock: The step that was just made.
        """

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        """What the optimizer steps: one group a network."""
        return [
            ParameterGroup(f"network {k + 1}", tuple(network.parameters())) for k, network in enumerate(self.networks)
        ]

    def predictors(self) -> Predictors:
        """Every network under its name, and the votes of all where there is more than one."""
        return predictors_of([self.network(k) for k in range(self.count)])


def predictors_of(networks: Sequence[SegmentationNetwork]) -> Predictors:
    """Networks that answer, under their names, and the votes of all where there is more than one.

    Args:
        networks: In order.

    Returns:
        The predictors.
    """
    names = ("single", *(f"net{k + 1}" for k in range(1, len(networks))))
    members = dict(zip(names, networks, strict=True))
    return Predictors(members, names if len(networks) == 1 else (*names, "mc", "sv", "hv"))


def check_peers(count: int) -> None:
    """Refuse to let one network teach itself.

    Args:
        count: n, of an n-CPS method.
    """
    if count < 2:
        raise PeersegError(
            f"n-CPS was given {count} network, expected at least 2: set method.count to 2 or more, "
            "or method.name to supervised"
        )


def check_strength(weight: float, ramp: float, threshold: float = 0.0) -> None:
    """Refuse strengths of an unsupervised term that mean nothing.

    Args:
        weight: At least 0.
        ramp: A share of the steps.
        threshold: A probability.
    """
    check_between("method.weight", weight, 0)
    check_between("method.ramp", ramp, 0, 1)
    check_between("method.threshold", threshold, 0, 1)


def check_choice(name: str, value: str, known: Sequence[str]) -> None:
    """Refuse a word that is none of the known ones.

    Args:
        name: Of the setting.
        value: What was given.
        known: What exists.
    """
    if value not in known:
        raise PeersegError(f"{name} is {value!r}, expected one of {', '.join(known)}")


Mode = Literal["train", "eval"]
Counted = Literal["inside", "all"]
