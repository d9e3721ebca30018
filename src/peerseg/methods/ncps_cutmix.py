"""n-CPS with CutMix, Algorithm 2 of the paper: peers label two images apart, and are learned from where both are mixed."""

from collections.abc import Iterator, Sequence
from typing import get_args

import torch
from torch import Tensor

from peerseg.data.batch import Batch
from peerseg.data.loading import Mixed
from peerseg.data.mixing import mix
from peerseg.errors import PeersegError
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
from peerseg.methods.losses import agreement as agreement_of
from peerseg.methods.losses import cross_supervision, supervision_of
from peerseg.methods.passes import label, learn
from peerseg.methods.views import answer_both, mixed_view, of_all
from peerseg.networks.base import SegmentationNetwork


class NCPSCutMix(Method):
    """n-CPS with CutMix. Labels come from passes without gradient anyway, so one graph lives at a time.

    Args:
        networks: At least two.
        weight: The paper's lambda. At 0 the unlabeled passes are still made: BatchNorm sees them.
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start, as published.
        threshold: A peer not surer than this of a pixel casts no vote there; 0: everyone votes, as published.
        labels: "train": labels from batch statistics, as published; "eval": from running statistics.
        counted: "inside": pixels of the photographs; "all": padding too, as published.
        partner: What is mixed in: "own": another draw from the pool (the paper); "same-image": another view of the
            image (the code); "neighbor": the batch's next image, which saves the second label pass.
        strong: Learn from views in other colors; the labels still come from the plain ones.
        agreement: Let a pixel count by the share of the peers that agree on its label.
        apart: Let each network learn labeled images of its own: the labeled batch is divided among them.
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
        threshold: float = 0.0,
        labels: Mode = "eval",
        counted: Counted = "inside",
        partner: Mixed = "neighbor",
        strong: bool = True,
        agreement: bool = False,
        apart: bool = False,
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_peers(len(networks))
        check_choice("method.partner", partner, get_args(Mixed))
        check_choice("method.labels", labels, get_args(Mode))
        check_choice("method.counted", counted, get_args(Counted))
        check_strength(weight, ramp, threshold)
        super().__init__(networks)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.threshold = weight, ramp, threshold
        self.labels, self.counted, self.partner, self.strong = labels, counted, partner, strong
        self.agreement, self.apart = agreement, apart

    @property
    def wants(self) -> Wants:
        """Views to label, a partner for each, and strong views to learn from."""
        return Wants(strong=int(self.strong), partner=self.partner)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L_i = CE(f_i(x), y) + weight/(n-1) sum_{j != i} CE(f_i(CutMix(u_1, u_2)), y_j); see ``Method.losses``."""
        weight = self.weight * clock.ramp(self.ramp)
        mixed = mixed_view(batch, strong=self.strong)
        counted = of_all(mixed.inside, self.counted)
        # Reference: labels come first here, as in the original CPS; the n-CPS code labels last, so that its running
        # statistics end on unlabeled images. The gradients are the same.
        answers = torch.stack(list(exchange({i: self._label(i, batch, clock) for i in exchange.members})))
        for i in exchange.members:
            peers = [j for j in range(self.count) if j != i]
            logits = learn(self.network(i), mixed.images, clock, i, "mixed")
            shares = agreement_of(answers[peers]) if self.agreement else None
            yield Loss(f"cross{i + 1}", weight * cross_supervision(logits, answers[peers], counted, shares))
            del logits  # its graph is done with: it must not live while the next one grows
            images, masks = self._own(i, batch)
            logits = learn(self.network(i), images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", self.supervision(logits, masks), completes=(f"network {i + 1}",))
            del logits

    def _own(self, i: int, batch: Batch) -> tuple[Tensor, Tensor]:
        """The labeled images that network i learns, and their masks."""
        if not self.apart:
            return batch.images, batch.masks
        if len(batch.images) % self.count:
            raise PeersegError(
                f"{len(batch.images)} labeled images cannot be divided among {self.count} networks: set loader.batch to a "
                "multiple of that (for each of loader.parts), or method.apart to false"
            )
        return batch.images.chunk(self.count)[i], batch.masks.chunk(self.count)[i]

    def _label(self, i: int, batch: Batch, clock: Clock) -> Tensor:
        """Y_i = CutMix(argmax f_i(u_1), argmax f_i(u_2)); equal to the argmax of mixed logits, M being binary."""

        def answer(images: Tensor, view: str) -> Tensor:
            return label(self.network(i), images, clock, i, view, mode=self.labels, threshold=self.threshold)

        return mix(*answer_both(batch, answer), batch.boxes[0])
