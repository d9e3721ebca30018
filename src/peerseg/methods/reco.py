"""ReCo: a mean teacher labels, classes are mixed, and representations of one class gather apart from the others."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn

from peerseg.data.batch import Batch
from peerseg.data.labels import UNLABELED
from peerseg.data.loading import Mixed
from peerseg.data.mixing import draw_classes, mix
from peerseg.errors import check_between
from peerseg.methods.average import Answers, Teachers
from peerseg.methods.base import (
    Clock,
    Counted,
    Exchange,
    Loss,
    Method,
    Mode,
    ParameterGroup,
    Predictors,
    Wants,
    check_choice,
    check_strength,
)
from peerseg.methods.contrast import Draw, Pixels, join, regional_contrast
from peerseg.methods.losses import cross_supervision, mean_of_images, probabilities, supervision_of
from peerseg.methods.passes import drawing
from peerseg.methods.views import answer_both, mixed_view, of_all
from peerseg.networks.base import SegmentationNetwork, widths
from peerseg.networks.choosing import choose
from peerseg.networks.resizing import resize

By = Literal["class", "box"]
WIDTH = 256  # of a representation


class ReCo(Method):
    """ReCo. With several networks, each has a teacher of its own and they never meet.

    Args:
        networks: The students; any number of them.
        weight: Of the cross-entropy to the teacher's labels.
        contrast: Weight of the regional contrast.
        ramp: Share of the steps over which both weights grow to their values; 0: full from the start, as published.
        confidence: An image counts by the share of its pixels of which the teacher is at least so sure.
        valid: Unlabeled pixels of which the teacher is less sure take no part in the contrast.
        queries: Pixels of each class that are drawn towards its mean.
        negatives: Pixels of other classes they are held against.
        mixing: What is mixed: "class": half of the partner's classes, as published; "box": CutMix.
        decay: What stays of the teacher in a step.
        warmup: Let the teacher follow faster in the first steps, as published.
        labels: "train": the teacher sees batch statistics, and has running ones of its own, as published; "eval": its
            running statistics are averages of the student's, and it uses them.
        answers: Who answers after training: "teacher", as published, or "student".
        counted: "inside": pixels of the photographs; "all": padding too.
        partner: What is mixed in: "own": another draw from the pool; "same-image": another view of the image;
            "neighbor": the batch's next image, which saves the second pass of the teacher.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self,
        networks: Sequence[SegmentationNetwork],
        *,
        weight: float = 1.0,
        contrast: float = 1.0,
        ramp: float = 0.0,
        confidence: float = 0.97,
        valid: float = 0.7,
        queries: int = 256,
        negatives: int = 512,
        mixing: By = "class",
        decay: float = 0.99,
        warmup: bool = True,
        labels: Mode = "eval",
        answers: Answers = "teacher",
        counted: Counted = "inside",
        partner: Mixed = "neighbor",
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_choice("method.mixing", mixing, get_args(By))
        check_choice("method.answers", answers, get_args(Answers))
        check_choice("method.counted", counted, get_args(Counted))
        check_choice("method.partner", partner, get_args(Mixed))
        check_strength(weight, ramp)
        check_between("method.contrast", contrast, 0)
        check_between("method.confidence", confidence, 0, 1)
        check_between("method.valid", valid, 0, 1)
        check_between("method.queries", queries, 1)
        check_between("method.negatives", negatives, 1)
        super().__init__(networks)
        self.teachers = Teachers(networks, decay, warmup, labels)
        self.heads = nn.ModuleList(_head(widths(network)[0]) for network in networks).to(networks[0].mean)
        self.supervision = supervision_of(hardest, certain)
        self.weight, self.contrast, self.ramp, self.draw = weight, contrast, ramp, Draw(queries, negatives)
        self.confidence, self.valid, self.mixing = confidence, valid, mixing
        self.answers, self.counted, self.partner = answers, counted, partner

    @property
    def wants(self) -> Wants:
        """Views for the teacher, a partner for each, and strong views to learn from."""
        return Wants(strong=1, partner=self.partner)

    def parameter_groups(self) -> Sequence[ParameterGroup]:
        """The networks, and the heads that represent pixels."""
        return [*super().parameter_groups(), ParameterGroup("heads", tuple(self.heads.parameters()))]

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = CE(f(x), y) + weight CE(f(m), y_m) + contrast RC(x and m), m the mixed views; see ``Method.losses``."""
        ramp = clock.ramp(self.ramp)
        for i in exchange.members:
            labels, sure, by = self._labels(i, batch, clock)
            mixed = mixed_view(replace(batch, boxes=(by,)), strong=True)
            counted = of_all(mixed.inside, self.counted)
            # The contrast spans labeled and unlabeled pixels, so both graphs live at once.
            known, represented = self._represented(i, batch.images, clock, "labeled")
            seen, found = self._represented(i, mixed.images, clock, "mixed")
            share = mean_of_images(sure >= self.confidence, counted)
            weights = share[:, None, None].expand_as(sure)
            loss = self.supervision(known, batch.masks)
            loss = loss + ramp * self.weight * cross_supervision(seen, labels[None], counted, weights)
            valid = torch.where((sure >= self.valid) & counted, labels, UNLABELED)
            pixels = join(_pixels(known, represented, batch.masks), _pixels(seen, found, valid))
            term = regional_contrast(pixels, self.draw, clock.generator(i, "contrast"))
            yield Loss(f"network{i + 1}", loss + ramp * self.contrast * term, completes=(f"network {i + 1}",))
            del known, represented, seen, found, loss, term, pixels

    def _labels(self, i: int, batch: Batch, clock: Clock) -> tuple[Tensor, Tensor, Tensor]:
        """The teacher's mixed labels, how sure it is of them, and where the partner shows."""
        ones, others = answer_both(batch, lambda images, view: self.teachers.believe(i, images, clock, view))
        by = batch.boxes[0]
        if self.mixing == "class":
            by = draw_classes(choose(others), others.shape[1], clock.generator(i, "classes"))
        target = mix(ones, others, by)
        return choose(target), target.amax(dim=1), by

    def _represented(self, i: int, images: Tensor, clock: Clock, view: str) -> tuple[Tensor, Tensor]:
        """Logits, and the representation of each place of the feature they come from."""
        network = self.network(i)
        with drawing(images.device, clock, i, view):
            feature = network.decode(network.encode(images))
            return network.classify(feature, (images.shape[2], images.shape[3])), self.heads[i](feature)

    def after_step(self, clock: Clock) -> None:
        """The teachers follow."""
        self.teachers.follow(self.networks, clock)

    def predictors(self) -> Predictors:
        """Teachers or students, and the votes of all where there is more than one."""
        return self.teachers.predictors(self.networks, self.answers)


def _pixels(logits: Tensor, represented: Tensor, labels: Tensor) -> Pixels:
    """The places of a feature whose nearest pixel has a class."""
    size = (represented.shape[2], represented.shape[3])
    down, across = (
        (2 * torch.arange(few, device=labels.device) + 1) * many // (2 * few)
        for few, many in zip(size, labels.shape[1:], strict=True)
    )
    there = labels[:, down][:, :, across]
    known = there < UNLABELED
    likely = resize(probabilities(logits.detach()), size).gather(1, torch.where(known, there, 0).long()[:, None])[:, 0]
    return Pixels(represented.permute(0, 2, 3, 1)[known], there[known], likely[known])


def _head(width: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(width, WIDTH, 3, padding=1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        nn.Conv2d(WIDTH, WIDTH, 1),
    )
