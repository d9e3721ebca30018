"""n-CPS, Algorithm 1 of the paper: every network learns the labels, and what its peers see in every image."""

from collections.abc import Iterator, Sequence
from typing import get_args

import torch
from torch import Tensor

from peerseg.data.batch import Batch
from peerseg.methods.base import (
    Clock,
    Counted,
    Exchange,
    Loss,
    Method,
    Mode,
    Wants,
    check_choice,
    check_peers,
    check_strength,
)
from peerseg.methods.losses import cross_supervision, hard_labels, supervision_of
from peerseg.methods.passes import label, learn
from peerseg.methods.views import Reduction, Side, sides_of
from peerseg.networks.base import SegmentationNetwork


class NCPS(Method):
    """n-CPS without CutMix.

    Args:
        networks: At least two.
        weight: The paper's lambda. At 0 the unlabeled passes are still made: BatchNorm sees them.
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start, as published.
        reduction: "concatenation": one mean over labeled and unlabeled images, as the code; "sum": of two means, as
            the paper, which is twice as much.
        threshold: A peer not surer than this of a pixel casts no vote there; 0: everyone votes, as published.
        labels: "train": labels as published; "eval": from running statistics, in passes of their own.
        counted: "inside": pixels of the photograph that are not ignored; "all": padding too, as published.
        lean: All but the last network label ahead, in passes without gradient, so that one graph lives at a time. Same
            gradients; n - 1 more passes over either view.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self,
        networks: Sequence[SegmentationNetwork],
        *,
        weight: float = 1.5,
        ramp: float = 0.4,
        reduction: Reduction = "concatenation",
        threshold: float = 0.0,
        labels: Mode = "eval",
        counted: Counted = "inside",
        lean: bool = True,
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_peers(len(networks))
        check_choice("method.reduction", reduction, get_args(Reduction))
        check_choice("method.labels", labels, get_args(Mode))
        check_choice("method.counted", counted, get_args(Counted))
        check_strength(weight, ramp, threshold)
        super().__init__(networks)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.reduction, self.threshold = weight, ramp, reduction, threshold
        self.labels, self.counted, self.lean = labels, counted, lean

    @property
    def wants(self) -> Wants:
        """One weak view of each unlabeled image."""
        return Wants()

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L_i = CE(f_i(x), y) + weight/(n-1) sum_{j != i} CE(f_i(x and u), argmax f_j); see ``Method.losses``."""
        weight = self.weight * clock.ramp(self.ramp)
        sides, ahead = sides_of(batch, self.counted, self.reduction), self._ahead(exchange.members)
        labels = {(i, side.name): self._label(i, side, clock) for side in sides for i in ahead}
        for side in sides:
            kept = {i: self._learn(i, side, clock) for i in exchange.members if i not in ahead}
            own = {i: hard_labels(logits, self.threshold) for i, logits in kept.items()}
            answers = torch.stack(list(exchange(own | {i: labels[i, side.name] for i in ahead})))
            for i in (*own, *ahead):
                logits = kept.pop(i) if i in kept else self._learn(i, side, clock)
                peers = [j for j in range(self.count) if j != i]
                loss = weight * side.share * cross_supervision(logits, answers[peers], side.counted)
                if side.name == "labeled":
                    loss = loss + self.supervision(logits, batch.masks)
                done = () if side.name == "labeled" else (f"network {i + 1}",)
                yield Loss(f"{side.name}{i + 1}", loss, completes=done)
                del logits, loss  # the graph is done with: it must not live while the next one grows

    def _ahead(self, members: Sequence[int]) -> Sequence[int]:
        """Which networks label in passes of their own; the others do while they learn, and their graphs wait."""
        if self.labels == "eval":
            return members
        return members[:-1] if self.lean else ()

    def _learn(self, i: int, side: Side, clock: Clock) -> Tensor:
        return learn(self.network(i), side.images, clock, i, side.name)

    def _label(self, i: int, side: Side, clock: Clock) -> Tensor:
        place = (i, side.name)  # the learning pass's own, so that both draw the same dropout
        network, sure = self.network(i), self.threshold
        return label(network, side.images, clock, *place, mode=self.labels, threshold=sure, track=False)
