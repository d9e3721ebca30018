"""GCT, guided collaborative training: of two networks the one that seems less flawed at a pixel teaches the other."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import get_args

import torch
from torch import Tensor, nn

from peerseg.data.batch import Batch
from peerseg.data.labels import UNLABELED
from peerseg.errors import PeersegError, check_between
from peerseg.methods.base import (
    Clock,
    Counted,
    Exchange,
    Loss,
    Method,
    ParameterGroup,
    Wants,
    check_choice,
)
from peerseg.methods.flaws import SMALLEST, FlawDetector, settled, true_flaws
from peerseg.methods.losses import consistency, mean_of_images, probabilities, supervision_of
from peerseg.methods.passes import learn, look, statistics
from peerseg.methods.views import Side, sides_of
from peerseg.networks.base import SegmentationNetwork, widths

PAIR = 2


class GCT(Method):
    """GCT.

    Args:
        networks: Two.
        weight: Of the squared distance to the less flawed network's probabilities.
        ramp: Share of the steps over which that weight grows to its value, slowly at first.
        correction: Weight of the flaws that the detector sees in a network's answer where both seem wrong.
        detection: Weight of the detector's own squared error.
        limit: A network whose flaw is above it at a pixel is wrong there.
        rate: The detector's learning rate at the first step; it has an optimizer of its own (AdamW).
        counted: "inside": pixels of the photograph that are not ignored; "all": padding too, as published.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self,
        networks: Sequence[SegmentationNetwork],
        *,
        weight: float = 100.0,
        ramp: float = 0.1,
        correction: float = 1.0,
        detection: float = 10.0,
        limit: float = 0.6,
        rate: float = 1e-4,
        counted: Counted = "inside",
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        if len(networks) != PAIR:
            raise PeersegError(f"gct was given {len(networks)} networks, expected {PAIR}: set method.count to {PAIR}")
        check_choice("method.counted", counted, get_args(Counted))
        for name, value in {"weight": weight, "correction": correction, "detection": detection, "rate": rate}.items():
            check_between(f"method.{name}", value, 0)
        check_between("method.ramp", ramp, 0, 1)
        check_between("method.limit", limit, 0, 1)
        super().__init__(networks)
        self.detector = FlawDetector(len(networks[0].mean) + widths(networks[0])[1]).to(networks[0].mean)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.correction, self.detection = weight, ramp, correction, detection
        self.limit, self.rate, self.counted = limit, rate, counted

    @property
    def wants(self) -> Wants:
        """One weak view of each unlabeled image."""
        return Wants()

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        """The networks, and the detector with an optimizer of its own."""
        detector = ParameterGroup("detector", tuple(self.detector.parameters()), kind="adamw", rate=self.rate)
        return [*super().parameter_groups(), detector]

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L_j = CE(f_j(x), y) + weight |p_j - p_better|^2 + correction D(p_j)^2 where both are wrong; see ``Method.losses``.

        D learns |D(p_j) - true flaws of p_j|^2 of labeled images. Who is better is found before anything is learned.
        """
        if min(batch.images.shape[2:]) < SMALLEST:
            raise PeersegError(
                f"views of {tuple(batch.images.shape[2:])} pixels are too small for the flaw detector of gct, expected at least "
                f"{SMALLEST}: set loader.crop to that or more"
            )
        weight = self.weight * _slow_ramp(clock, self.ramp)
        for side in sides_of(batch, self.counted):
            before = {i: self._believe(i, side, clock) for i in range(PAIR)}
            flaws = {i: self._settled(side.images, before[i]) for i in range(PAIR)}
            for i in range(PAIR):
                target, both = self._guide(i, before, flaws)
                logits = learn(self.network(i), side.images, clock, i, side.name)
                loss = weight * consistency(logits, target, side.counted)
                loss = side.share * (loss + self.correction * self._correction(side, logits, both))
                if side.name == "labeled":
                    loss = loss + self.supervision(logits, batch.masks)
                done = () if side.name == "labeled" else (f"network {i + 1}",)
                yield Loss(f"{side.name}{i + 1}", loss, completes=done)
                del logits, loss  # the graph is done with: it must not live while the next one grows
            if side.name == "labeled":
                for i in range(PAIR):
                    yield Loss("detector", self._detection(batch, before[i]) / PAIR)

    def _believe(self, i: int, side: Side, clock: Clock) -> Tensor:
        place = (i, side.name)  # the learning pass's own, so that both draw the same dropout
        return probabilities(look(self.network(i), side.images, clock, *place, mode="train", track=False))

    @torch.no_grad()
    def _settled(self, images: Tensor, answer: Tensor) -> Tensor:
        with statistics(self.detector, track=False):
            flaws = settled(self.detector(images, answer))
        return torch.where(flaws > self.limit, 1.0, flaws)

    def _guide(self, i: int, before: Mapping[int, Tensor], flaws: Mapping[int, Tensor]) -> tuple[Tensor, Tensor]:
        """The target of network i, its own answer where it is no worse; and where both are wrong."""
        other = 1 - i
        keeps = flaws[other] >= flaws[i]
        both = (flaws[i] > self.limit) & (flaws[other] > self.limit)
        return torch.where(keeps[:, None], before[i], before[other]), both

    def _correction(self, side: Side, logits: Tensor, both: Tensor) -> Tensor:
        """The flaws that a detector which does not learn from this sees where both networks are wrong."""
        with frozen(self.detector), statistics(self.detector, track=False):
            flaws = self.detector(side.images, probabilities(logits))
        return mean_of_images(both * flaws.square(), side.counted).mean()

    def _detection(self, batch: Batch, answer: Tensor) -> Tensor:
        """What the detector learns from: where a labeled answer is wrong."""
        known = batch.masks < UNLABELED
        error = self.detector(batch.images, answer) - true_flaws(answer, batch.masks, known)
        return self.detection * mean_of_images(error.square(), known).mean()


@contextmanager
def frozen(module: nn.Module) -> Iterator[None]:
    """Gradients pass through a module to its input, and none stays in it.

    Args:
        module: Whose parameters get none.
    """
    module.requires_grad_(False)
    try:
        yield
    finally:
        module.requires_grad_(True)


def _slow_ramp(clock: Clock, share: float) -> float:
    """``exp(-5 (1 - t)^2)``, t growing to 1 over a share of the steps."""
    return math.exp(-5 * (1 - clock.ramp(share)) ** 2)
