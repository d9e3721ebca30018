"""A trained run as something that answers: the networks, their votes and their classes, from the run folder alone."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from peerseg.data.dataset import Image, SegmentationDataset
from peerseg.data.labels import LabelSpace
from peerseg.errors import PeersegError, resume_command
from peerseg.experiment.build import build_method, build_placement, default_vote, protocol_of
from peerseg.experiment.plans import EvaluationPlan
from peerseg.experiment.settings import FREE, Settings, resolve
from peerseg.inference.evaluate import Scores, evaluate
from peerseg.inference.predict import Prediction, predict
from peerseg.methods.base import Predictors
from peerseg.placement import Placement
from peerseg.runs import RunFolder
from peerseg.training import checkpoint


class Ensemble:
    """The networks of a run, ready to answer.

    Args:
        path: The run folder.
        which: "best" or "last" checkpoint.
        overrides: Dotted settings that differ from the run's: of the evaluation, such as ``{"evaluation.flip": True}``,
            and where the data lies now.

    Attributes:
        settings: Of the run.
        label_space: Its classes.
        predictors: Its networks by name, and the votes there are.
        vote: What answers unless another vote is asked for.
        protocol: How images are shown.
        step: The step the checkpoint was saved at.
        judged: How many val pixels each class had in training.
    """

    def __init__(self, path: str | Path, which: str = "best", overrides: Mapping[str, Any] | None = None) -> None:
        if which not in ("best", "last"):
            raise PeersegError(f"--checkpoint is {which!r}, expected 'best' or 'last'")
        run = RunFolder.open(path)
        found = checkpoint.find(run.path / "checkpoints", cast(checkpoint.Which, which))
        if found is None and which == "best" and checkpoint.find(run.path / "checkpoints", "last") is not None:
            raise PeersegError(f"{str(path)!r} has no best checkpoint: use --checkpoint last")
        if found is None:
            raise PeersegError(f"{str(path)!r} has no {which} checkpoint yet: go on with `{resume_command(path)}`")
        settled = (name for name in overrides or {} if not (name.startswith("evaluation.") or name in FREE))
        other = next(settled, None)
        if other is not None:
            raise PeersegError(
                f"{other} is settled by the training of {str(path)!r}: only evaluation.* and {', '.join(FREE)} can change now"
            )
        self.settings: Settings = resolve(run.settings(), overrides or {})[0]
        names, colors = found.state["classes"], found.state["colors"]
        self.label_space = LabelSpace(tuple(names), tuple((red, green, blue) for red, green, blue in colors))
        method = build_method(self.settings, len(names), found.state["channels"], pretrained=False)
        checkpoint.load_method(found.path, method)
        self._placement = _placed(self.settings)
        self._placement.place(method)
        plan = EvaluationPlan(**self.settings.evaluation)
        self.predictors: Predictors = method.predictors()
        self.vote = default_vote(plan, method)
        self.protocol = protocol_of(plan)
        self.step: int = found.state["step"]
        self.judged: list[int] = found.state["judged"]

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


def _placed(settings: Settings) -> Placement:
    """Where the run was trained, or where this machine computes best if it has no such device."""
    try:
        return build_placement(settings)
    except PeersegError:
        return build_placement(settings.with_(placement__device="auto"))
