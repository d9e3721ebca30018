"""CutMix-Seg: a mean teacher labels two images apart, and its student agrees where both are mixed."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import get_args

from torch import Tensor

from peerseg.data.batch import Batch
from peerseg.data.loading import Mixed
from peerseg.data.mixing import mix
from peerseg.errors import check_between
from peerseg.methods.average import Answers, Teachers
from peerseg.methods.base import (
    Clock,
    Counted,
    Exchange,
    Loss,
    Method,
    Mode,
    Predictors,
    Wants,
    check_choice,
    check_strength,
)
from peerseg.methods.losses import consistency, mean_of_images, supervision_of
from peerseg.methods.passes import learn
from peerseg.methods.views import answer_both, mixed_view, of_all
from peerseg.networks.base import SegmentationNetwork


class CutMixSeg(Method):
    """CutMix-Seg. With several networks, each has a teacher of its own and they never meet.

    Args:
        networks: The students; any number of them.
        weight: Of the squared distance to the teacher's probabilities, summed over the classes.
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start, as published.
        confidence: An image counts by the share of its pixels of which the teacher is at least so sure.
        decay: What stays of the teacher in a step.
        warmup: Let the teacher follow faster in the first steps.
        labels: "train": the teacher sees batch statistics, and has running ones of its own; "eval": its running
            statistics are averages of the student's, and it uses them.
        answers: Who answers after training: "teacher", as published, or "student".
        counted: "inside": pixels of the photographs; "all": padding too.
        partner: What is mixed in: "own": another draw from the pool; "same-image": another view of the image;
            "neighbor": the batch's next image, which saves the second pass of the teacher.
        strong: Learn from views in other colors; the teacher still sees the plain ones.
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
        confidence: float = 0.97,
        decay: float = 0.99,
        warmup: bool = True,
        labels: Mode = "eval",
        answers: Answers = "teacher",
        counted: Counted = "inside",
        partner: Mixed = "neighbor",
        strong: bool = True,
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_choice("method.answers", answers, get_args(Answers))
        check_choice("method.counted", counted, get_args(Counted))
        check_choice("method.partner", partner, get_args(Mixed))
        check_strength(weight, ramp)
        check_between("method.confidence", confidence, 0, 1)
        super().__init__(networks)
        self.teachers = Teachers(networks, decay, warmup, labels)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.confidence = weight, ramp, confidence
        self.answers, self.counted, self.partner, self.strong = answers, counted, partner, strong

    @property
    def wants(self) -> Wants:
        """Views for the teacher, a partner for each, and strong views to learn from."""
        return Wants(strong=int(self.strong), partner=self.partner)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = CE(f(x), y) + weight |softmax f(CutMix(u_1, u_2)) - CutMix(g(u_1), g(u_2))|^2; see ``Method.losses``."""
        weight = self.weight * clock.ramp(self.ramp)
        mixed = mixed_view(batch, strong=self.strong)
        counted = of_all(mixed.inside, self.counted)
        for i in exchange.members:
            target = mix(*answer_both(batch, partial(self._believe, i, clock)), batch.boxes[0])
            logits = learn(self.network(i), mixed.images, clock, i, "mixed")
            distance = logits.shape[1] * consistency(logits, target, counted, self._sure(target, counted))
            yield Loss(f"consistency{i + 1}", weight * distance)
            del logits, distance  # the graph is done with: it must not live while the next one grows
            logits = learn(self.network(i), batch.images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", self.supervision(logits, batch.masks), completes=(f"network {i + 1}",))
            del logits

    def _believe(self, i: int, clock: Clock, images: Tensor, view: str) -> Tensor:
        return self.teachers.believe(i, images, clock, view)

    def _sure(self, target: Tensor, counted: Tensor) -> Tensor:
        """(B,), the share of counted pixels of which the teacher is sure."""
        # Reference: the published code takes one share over the whole batch.
        return mean_of_images(target.amax(dim=1) >= self.confidence, counted)

    def after_step(self, clock: Clock) -> None:
        """The teachers follow."""
        self.teachers.follow(self.networks, clock)

    def predictors(self) -> Predictors:
        """Teachers or students, and the votes of all where there is more than one."""
        return self.teachers.predictors(self.networks, self.answers)
