"""How n networks answer together: every vote from the same probabilities."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from peerseg.errors import PeersegError, nearest
from peerseg.networks.choosing import choose

JOINT = ("mc", "sv", "hv")


@dataclass(frozen=True)
class Evidence:
    """What n networks say of some images: all that a vote needs.

    Args:
        probabilities: (n, B, C, H, W), each network's softmax.
        own: (n, B, C, H, W), by what a network alone chooses, where that is not its probabilities.
        most: (B, C, H, W), what "mc" compares, where that is not the greatest of the probabilities.
    """

    probabilities: Tensor
    own: Tensor | None = None
    most: Tensor | None = None

    @property
    def alone(self) -> Tensor:
        """(n, B, C, H, W), by what each network chooses."""
        return self.probabilities if self.own is None else self.own

    @cached_property
    def labels(self) -> Tensor:
        """(n, B, H, W) uint8, what each network answers alone."""
        return choose(self.alone, dim=2)


def vote(probabilities: Tensor, rule: str, names: Sequence[str] = ()) -> Tensor:
    """The labels that a rule chooses.

    Args:
        probabilities: (n, B, C, H, W), each network's softmax.
        rule: "single" or "net1": network 1 alone, as the original CPS; "net2" and so on; "mc": the class of the most
            confident network; "sv": the class with the largest sum; "hv": the class most networks choose, ties by "sv".
        names: What the networks are called besides.

    Returns:
        (B, H, W) uint8.
    """
    return answer(Evidence(probabilities), rule, names)


def answer(evidence: Evidence, rule: str, names: Sequence[str] = ()) -> Tensor:
    """The labels that a rule chooses.

    Args:
        evidence: What the networks say.
        rule: As for ``vote``.
        names: As for ``vote``.

    Returns:
        (B, H, W) uint8.
    """
    if rule == "mc":
        return choose(evidence.probabilities.amax(dim=0) if evidence.most is None else evidence.most)
    if rule == "sv":
        return choose(evidence.probabilities.sum(dim=0))
    if rule == "hv":
        ballots = _ballots(evidence)
        most = ballots == ballots.amax(dim=1, keepdim=True)
        return choose(torch.where(most, evidence.probabilities.sum(dim=0), -1.0))
    return evidence.labels[member_index(rule, len(evidence.labels), names)]


def member_index(rule: str, count: int, names: Sequence[str] = ()) -> int:
    """Which network a rule names.

    Args:
        rule: "single", "net1", "net2" ... or one of ``names``.
        count: n.
        names: What the networks are called besides.

    Returns:
        The index from 0.
    """
    known = {"single": 0} | {f"net{k + 1}": k for k in range(count)} | {name: k for k, name in enumerate(names)}
    if rule not in known:
        raise PeersegError(f"{rule!r} is no vote of {count} networks; {nearest(rule, [*known, *JOINT])}")
    return known[rule]


def disagreement(evidence: Evidence) -> Tensor:
    """Where the networks do not all give the same label.

    Args:
        evidence: What the networks say.

    Returns:
        (B, H, W) bool.
    """
    return (evidence.labels != evidence.labels[:1]).any(dim=0)


def _ballots(evidence: Evidence) -> Tensor:
    """(B, C, H, W), how many networks chose each class."""
    classes = torch.arange(evidence.alone.shape[2], dtype=torch.uint8, device=evidence.labels.device)
    return (evidence.labels[:, :, None] == classes[:, None, None]).sum(dim=0)
