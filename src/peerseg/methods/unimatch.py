"""UniMatch: FixMatch with two strong views, and a third one disturbed in its features."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import get_args

import torch.nn.functional as F
from torch import Tensor

from peerseg.data.batch import Batch, View
from peerseg.data.loading import Mixed
from peerseg.data.mixing import mix
from peerseg.errors import check_between
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
from peerseg.methods.passes import drawing, label, learn
from peerseg.methods.views import answer_both, mixed_view, of_all, unlabeled_of
from peerseg.networks.base import SegmentationNetwork

STRONG = 2  # views
PIXELS = 4  # axes of a map of them
SHARES = (0.25, 0.25, 0.5)  # of the term: either strong view, and the disturbed features


class UniMatch(Method):
    """UniMatch (the first of its two versions). Several networks never meet.

    Args:
        networks: Any number of them.
        weight: Of the term on unlabeled images: a quarter for either strong view, half for the disturbed features.
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start, as published.
        threshold: Pixels of which the network is not surer than this have no label; the mean counts them all the same.
        drop: Share of the feature channels that are dropped.
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
        drop: float = 0.5,
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
        check_between("method.drop", drop, 0, 1)
        super().__init__(networks)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.threshold, self.drop = weight, ramp, threshold, drop
        self.labels, self.counted, self.partner = labels, counted, partner

    @property
    def wants(self) -> Wants:
        """Views to label, a partner for each, and two strong views, each mixed by boxes of its own."""
        return Wants(strong=STRONG, partner=self.partner, mixed=STRONG)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """FixMatch's loss on two strong views, and CE(f(u) with dropped features, sure argmax f(u)); see ``Method.losses``."""
        weight = self.weight * clock.ramp(self.ramp)
        for i in exchange.members:
            first, second = answer_both(batch, partial(self._label, i, clock))
            for k in range(STRONG):
                mixed = mixed_view(batch, k, strong=True)
                logits = learn(self.network(i), mixed.images, clock, i, f"mixed{k}")
                target, counted = mix(first, second, batch.boxes[k]), of_all(mixed.inside, self.counted)
                yield Loss(f"strong{i + 1}", weight * SHARES[k] * cross_supervision(logits, target[None], counted))
                del logits  # its graph is done with: it must not live while the next one grows
            view = unlabeled_of(batch)
            logits = self._disturbed(i, view, clock)
            counted = of_all(view.inside, self.counted)
            yield Loss(f"disturbed{i + 1}", weight * SHARES[-1] * cross_supervision(logits, first[None], counted))
            del logits
            logits = learn(self.network(i), batch.images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", self.supervision(logits, batch.masks), completes=(f"network {i + 1}",))
            del logits

    def _label(self, i: int, clock: Clock, images: Tensor, view: str) -> Tensor:
        return label(self.network(i), images, clock, i, view, mode=self.labels, threshold=self.threshold)

    def _disturbed(self, i: int, view: View, clock: Clock) -> Tensor:
        """Logits from features that lack half of their channels, drawn for every image and resolution."""
        network = self.network(i)
        with drawing(view.images.device, clock, i, "disturbed"):
            features = [_dropped(feature, self.drop) for feature in network.encode(view.images)]
            return network.classify(network.decode(features), (view.images.shape[2], view.images.shape[3]))


def _dropped(feature: Tensor, share: float) -> Tensor:
    """Without a share of its channels; what is no map of pixels stays."""
    return F.dropout2d(feature, share) if feature.ndim == PIXELS else feature
