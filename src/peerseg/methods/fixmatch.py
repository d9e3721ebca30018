"""FixMatch for segmentation: a network learns from strong, mixed views what it is sure of in plain ones."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import get_args

from torch import Tensor

from peerseg.data.batch import Batch
from peerseg.data.loading import Mixed
from peerseg.data.mixing import mix
from peerseg.methods.base import (
    Clock,
    Counted,
    Exchange,
    Loss,
    Method,
    Mode,
    Wants,
    check_choice,
    check_strength,
)
from peerseg.methods.losses import cross_supervision, supervision_of
from peerseg.methods.passes import label, learn
from peerseg.methods.views import answer_both, mixed_view, of_all
from peerseg.networks.base import SegmentationNetwork


class FixMatch(Method):
    """FixMatch. Several networks never meet.

    Args:
        networks: Any number of them.
        weight: Of the term on unlabeled images.
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start, as published.
        threshold: Pixels of which the network is not surer than this have no label; the mean counts them all the same.
        labels: "eval": labels from running statistics; "train": from batch statistics.
        counted: "inside": pixels of the photographs; "all": padding too.
        partner: What is mixed in: "own": another draw from the pool; "same-image": another view of the image;
            "neighbor": the batch's next image, which saves the second label pass.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self,
        networks: Sequence[SegmentationNetwork],
        *,
        weight: float = 1.0,
        ramp: float = 0.0,
        threshold: float = 0.95,
        labels: Mode = "eval",
        counted: Counted = "inside",
        partner: Mixed = "neighbor",
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_choice("method.labels", labels, get_args(Mode))
        check_choice("method.counted", counted, get_args(Counted))
        check_choice("method.partner", partner, get_args(Mixed))
        check_strength(weight, ramp, threshold)
        super().__init__(networks)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.threshold = weight, ramp, threshold
        self.labels, self.counted, self.partner = labels, counted, partner

    @property
    def wants(self) -> Wants:
        """Views to label, a partner for each, and a strong view to learn from."""
        return Wants(strong=1, partner=self.partner)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = CE(f(x), y) + weight CE(f(CutMix(s_1, s_2)), CutMix(sure argmax f(u_1), f(u_2))); see ``Method.losses``."""
        weight = self.weight * clock.ramp(self.ramp)
        mixed = mixed_view(batch, strong=True)
        counted = of_all(mixed.inside, self.counted)
        for i in exchange.members:
            target = mix(*answer_both(batch, partial(self._label, i, clock)), batch.boxes[0])
            logits = learn(self.network(i), mixed.images, clock, i, "mixed")
            yield Loss(f"strong{i + 1}", weight * cross_supervision(logits, target[None], counted))
            del logits  # its graph is done with: it must not live while the next one grows
            logits = learn(self.network(i), batch.images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", self.supervision(logits, batch.masks), completes=(f"network {i + 1}",))
            del logits

    def _label(self, i: int, clock: Clock, images: Tensor, view: str) -> Tensor:
        return label(self.network(i), images, clock, i, view, mode=self.labels, threshold=self.threshold)
