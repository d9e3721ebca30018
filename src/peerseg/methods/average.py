"""Teachers that are the moving averages of their students: they never see a gradient."""

import copy
from collections.abc import Iterable, Sequence
from typing import Literal, cast, get_args

import torch
from torch import Tensor, nn

from peerseg.errors import check_between
from peerseg.methods.base import Clock, Mode, Predictors, check_choice, predictors_of
from peerseg.methods.losses import probabilities
from peerseg.methods.passes import look
from peerseg.networks.base import SegmentationNetwork

Answers = Literal["teacher", "student"]


class Teachers(nn.Module):
    """One teacher for each network.

    Args:
        students: The networks.
        decay: What stays of a teacher in a step.
        warmup: Let no more than ``1 - 1 / step`` stay: a mean of all steps so far, until they are many.
        labels: "train": teachers see batch statistics, and have running ones of their own; "eval": they use running
            statistics, which are averages of the students'.
    """

    def __init__(self, students: Sequence[SegmentationNetwork], decay: float, warmup: bool, labels: Mode) -> None:
        check_between("method.decay", decay, 0, 1)
        check_choice("method.labels", labels, get_args(Mode))
        super().__init__()
        self.networks = nn.ModuleList(copy.deepcopy(student).requires_grad_(False) for student in students)
        self.decay, self.warmup, self.labels = decay, warmup, labels

    def believe(self, index: int, images: Tensor, clock: Clock, view: str) -> Tensor:
        """What one teacher believes of some images.

        Args:
            index: Which, counted from 0.
            images: (B, C, H, W).
            clock: The step.
            view: The name of what is shown.

        Returns:
            (B, classes, H, W) probabilities without gradient.
        """
        teacher = cast(SegmentationNetwork, self.networks[index])
        return probabilities(look(teacher, images, clock, index, "teacher", view, mode=self.labels))

    @torch.no_grad()
    def follow(self, students: Iterable[nn.Module], clock: Clock) -> None:
        """``teacher <- decay teacher + (1 - decay) student``; after the first step the teacher is a copy.

        Args:
            students: Which have just learned.
            clock: The step that was just made.
        """
        steady = clock.step > 0 and not self.warmup
        moves = 1 - (self.decay if steady else min(self.decay, 1 - 1 / (clock.step + 1)))
        for teacher, student in zip(self.networks, students, strict=True):
            for own, other in zip(teacher.parameters(), student.parameters(), strict=True):
                own.lerp_(other, moves)
            if self.labels == "eval":
                for kept, seen in zip(teacher.buffers(), student.buffers(), strict=True):
                    kept.copy_(torch.lerp(kept, seen, moves) if kept.is_floating_point() else seen)

    def predictors(self, students: Iterable[nn.Module], answers: Answers) -> Predictors:
        """Who answers after training.

        Args:
            students: The networks.
            answers: "teacher" or "student".

        Returns:
            The predictors.
        """
        chosen = self.networks if answers == "teacher" else students
        return predictors_of([cast(SegmentationNetwork, network) for network in chosen])
