"""A trained run as something that answers: the networks, their votes and their classes, from the run folder alone."""

from collections.abc import Iterable
from pathlib import Path
from typing import cast

from peerseg.data.dataset import Image, SegmentationDataset
from peerseg.data.labels import LabelSpace
from peerseg.errors import PeersegError
from peerseg.experiment.build import build_method, default_vote, protocol_of
from peerseg.experiment.plans import EvaluationPlan
from peerseg.experiment.settings import Settings, resolve
from peerseg.inference.evaluate import Scores, evaluate
from peerseg.inference.predict import Prediction, predict
from peerseg.methods.base import Predictors
from peerseg.placement import OneProcess
from peerseg.runs import RunFolder
from peerseg.training import checkpoint


class Ensemble:
    """The networks of a run, ready to answer.

    Args:
        path: The run folder.
        which: "best" or "last" checkpoint.

    Attributes:
        settings: Of the run.
        label_space: Its classes.
        predictors: Its networks by name, and the votes there are.
        vote: What answers unless another vote is asked for.
        protocol: How images are shown.
        step: The step the checkpoint was saved at.
    """

    def __init__(self, path: str | Path, which: str = "best") -> None:
        if which not in ("best", "last"):
            raise PeersegError(f"--checkpoint is {which!r}, expected 'best' or 'last'")
        run = RunFolder.open(path)
        found = checkpoint.find(run.path / "checkpoints", cast(checkpoint.Which, which))
        if found is None:
            raise PeersegError(
                f"{str(path)!r} has no {which} checkpoint yet: go on with `peerseg train --resume {path}`"
            )
        self.settings: Settings = resolve(run.settings(), {})[0]
        names, colors = found.state["classes"], found.state["colors"]
        self.label_space = LabelSpace(tuple(names), tuple((red, green, blue) for red, green, blue in colors))
        method = build_method(self.settings, len(names), found.state["channels"], pretrained=False)
        checkpoint.load_method(found.path, method)
        self._placement = OneProcess(method.count)  # where this machine computes best, wherever it was trained
        self._placement.place(method)
        plan = EvaluationPlan(**self.settings.evaluation)
        self.predictors: Predictors = method.predictors()
        self.vote = default_vote(plan, method)
        self.protocol = protocol_of(plan)
        self.step: int = found.state["step"]

    def predict(self, image: Image, *, vote: str | None = None) -> Prediction:
        """Label one image.

        Args:
            image: (H, W, channels) as read: uint8, uint16 or float32.
            vote: Which answer; the run's own where None.

        Returns:
            Labels, confidence, disagreement and each network's probabilities.
        """
        with self._placement.running():
            return predict(self.predictors.members, image, vote=vote or self.vote, protocol=self.protocol)

    def evaluate(self, dataset: SegmentationDataset, ids: Iterable[str]) -> Scores:
        """Score every vote on some images.

        Args:
            dataset: Whose images and masks.
            ids: Which.

        Returns:
            The scores.
        """
        members, votes = self.predictors.members, self.predictors.votes
        with self._placement.running():
            return evaluate(members, votes, dataset, ids, protocol=self.protocol)
