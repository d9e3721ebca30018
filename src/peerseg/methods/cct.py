"""CCT, cross-consistency training: auxiliary classifiers agree with the main one although their features are disturbed."""

import math
from collections.abc import Iterator, Sequence
from typing import cast, get_args

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
    check_strength,
)
from peerseg.methods.losses import consistency, cross_supervision, probabilities, supervision_of
from peerseg.methods.passes import drawing, learn
from peerseg.methods.perturbations import KINDS, Classify, Seen, go_astray
from peerseg.methods.views import of_all, unlabeled_of
from peerseg.networks.base import SegmentationNetwork, widths
from peerseg.networks.choosing import choose
from peerseg.networks.resizing import resize

SURE = 0.99  # the limit that annealing ends at


class CCT(Method):
    """CCT. Several networks never meet.

    Args:
        networks: Any number of them.
        weight: Of the mean squared distance between auxiliary classifiers and the main one.
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start.
        each: Auxiliary classifiers of each kind: channels dropped, windows cut out of objects, context hidden, objects
            hidden, attended places dropped, noise.
        adversarial: Auxiliary classifiers whose features go where their answer changes most (VAT).
        background: The class, counted from 0, that is no object; null: half of an image's classes, drawn, are its objects.
        anneal: Share of the steps over which labeled pixels of which the network is sure already come to count; 0: all
            count from the start.
        counted: "inside": pixels of the photographs; "all": padding too, as published.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self,
        networks: Sequence[SegmentationNetwork],
        *,
        weight: float = 30.0,
        ramp: float = 0.1,
        each: int = 2,
        adversarial: int = 0,
        background: int | None = None,
        anneal: float = 0.0,
        counted: Counted = "inside",
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_choice("method.counted", counted, get_args(Counted))
        check_strength(weight, ramp)
        check_between("method.anneal", anneal, 0, 1)
        if anneal and hardest is not None:
            raise PeersegError(
                f"method.anneal is {anneal} and method.hardest is {hardest}, which choose labeled pixels in two ways: set one of "
                "them to 0 or null"
            )
        check_between("method.each", each, 0)
        check_between("method.adversarial", adversarial, 0)
        check_between("method.each + method.adversarial", each + adversarial, 1)
        super().__init__(networks)
        self.disturbances = (*(kind for kind in KINDS.values() for _ in range(each)), *(go_astray,) * adversarial)
        sizes = [widths(network) for network in networks]
        self.classes = sizes[0][1]
        if background is not None:
            check_between("method.background", background, 0, self.classes - 1)
        self.auxiliary = nn.ModuleList(
            nn.ModuleList(nn.Conv2d(width, self.classes, 1) for _ in self.disturbances) for width, _ in sizes
        ).to(networks[0].mean)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.background, self.anneal = weight, ramp, background, anneal
        self.counted = counted

    @property
    def wants(self) -> Wants:
        """One weak view of each unlabeled image."""
        return Wants()

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        """The networks, and the auxiliary classifiers."""
        return [*super().parameter_groups(), ParameterGroup("auxiliary", tuple(self.auxiliary.parameters()))]

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = CE(f(x), y) + weight/K sum_k |softmax a_k(d_k(h(u))) - softmax f(u)|^2; see ``Method.losses``.

        h is the feature that f classifies, d_k a disturbance, a_k an auxiliary classifier. Each classifier's graph ends
        at h, where their gradients add up; last, h takes the sum back through the network.
        """
        view, weight = unlabeled_of(batch), self.weight * clock.ramp(self.ramp)
        size, counted = (view.images.shape[2], view.images.shape[3]), of_all(view.inside, self.counted)
        for i in exchange.members:
            logits = learn(self.network(i), batch.images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", self._supervised(logits, batch.masks, clock))
            del logits  # its graph is done with: it must not live while the next one grows
            feature, target = self._seen(i, view.images, clock)
            leaf = feature.detach().requires_grad_()
            seen = Seen(leaf, choose(resize(target, (leaf.shape[2], leaf.shape[3]))), target, self.background)
            for k, disturb in enumerate(self.disturbances):
                classify = self._classifier(i, k, size)
                disturbed = disturb(seen, classify, clock.generator(i, "disturbance", k))
                distance = consistency(classify(disturbed), target, counted)
                yield Loss(f"consistency{i + 1}", weight / len(self.disturbances) * distance)
                del disturbed, distance
            assert leaf.grad is not None, "every loss was back-propagated"
            yield Loss(f"feature{i + 1}", feature, gradient=leaf.grad, completes=(f"network {i + 1}",))
            del feature

    def _seen(self, i: int, images: Tensor, clock: Clock) -> tuple[Tensor, Tensor]:
        """The feature with its graph, and the main classifier's probabilities without."""
        network = self.network(i)
        with drawing(images.device, clock, i, "unlabeled"):
            feature = network.decode(network.encode(images))
            with torch.no_grad():
                logits = network.classify(feature, (images.shape[2], images.shape[3]))
        return feature, probabilities(logits)

    def _classifier(self, i: int, k: int, size: tuple[int, int]) -> Classify:
        auxiliary = cast(nn.ModuleList, self.auxiliary[i])[k]
        return lambda feature: resize(auxiliary(feature), size)

    def _supervised(self, logits: Tensor, masks: Tensor, clock: Clock) -> Tensor:
        if not self.anneal:
            return self.supervision(logits, masks)
        return cross_supervision(logits, masks[None], self._unsure(logits.detach(), masks, clock))

    def _unsure(self, logits: Tensor, masks: Tensor, clock: Clock) -> Tensor:
        """(B, H, W) bool, the labeled pixels whose class is less probable than a limit that grows."""
        limit = 1 / self.classes + (SURE - 1 / self.classes) * (1 - math.exp(-5 * clock.ramp(self.anneal)))
        target = torch.where(masks < UNLABELED, masks, 0).long()
        return (masks < UNLABELED) & (probabilities(logits).gather(1, target[:, None])[:, 0] < limit)
