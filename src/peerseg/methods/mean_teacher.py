"""Mean teacher: a network agrees with the moving average of itself on every image."""

from collections.abc import Iterator, Sequence
from typing import get_args

from peerseg.data.batch import Batch
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
from peerseg.methods.losses import consistency, supervision_of
from peerseg.methods.passes import learn
from peerseg.methods.views import sides_of
from peerseg.networks.base import SegmentationNetwork


class MeanTeacher(Method):
    """Mean teacher. With several networks, each has a teacher of its own and they never meet.

    Args:
        networks: The students; any number of them.
        weight: Of the squared distance to the teacher's probabilities (a mean over classes, so it is small).
        ramp: Share of the steps over which the weight grows to its value; 0: full from the start, as published.
        decay: What stays of the teacher in a step.
        warmup: Let the teacher follow faster in the first steps.
        labels: "train": the teacher sees batch statistics, and has running ones of its own, as published; "eval": its
            running statistics are averages of the student's, and it uses them.
        answers: Who answers after training: "teacher", or "student", as published.
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
        ramp: float = 0.4,
        decay: float = 0.99,
        warmup: bool = True,
        labels: Mode = "eval",
        answers: Answers = "teacher",
        counted: Counted = "inside",
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_choice("method.answers", answers, get_args(Answers))
        check_choice("method.counted", counted, get_args(Counted))
        check_strength(weight, ramp)
        super().__init__(networks)
        self.teachers = Teachers(networks, decay, warmup, labels)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.ramp, self.answers, self.counted = weight, ramp, answers, counted

    @property
    def wants(self) -> Wants:
        """One weak view of each unlabeled image."""
        return Wants()

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = CE(f(x), y) + weight |softmax f(x and u) - softmax g(x and u)|^2, g the teacher; see ``Method.losses``."""
        weight = self.weight * clock.ramp(self.ramp)
        for i in exchange.members:
            for side in sides_of(batch, self.counted):
                target = self.teachers.believe(i, side.images, clock, side.name)
                logits = learn(self.network(i), side.images, clock, i, side.name)
                loss = weight * side.share * consistency(logits, target, side.counted)
                if side.name == "labeled":
                    loss = loss + self.supervision(logits, batch.masks)
                done = () if side.name == "labeled" else (f"network {i + 1}",)
                yield Loss(f"{side.name}{i + 1}", loss, completes=done)
                del logits, loss  # the graph is done with: it must not live while the next one grows

    def after_step(self, clock: Clock) -> None:
        """The teachers follow."""
        # Reference: the published code does so before the step, one step late.
        self.teachers.follow(self.networks, clock)

    def predictors(self) -> Predictors:
        """Teachers or students, and the votes of all where there is more than one."""
        return self.teachers.predictors(self.networks, self.answers)
