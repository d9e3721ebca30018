"""The two sections of a recipe that name nothing: how batches are made, and how they are judged."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from peerseg.data.color import Jitter
from peerseg.errors import PeersegError, check_between
from peerseg.experiment.checking import check_section


@dataclass(frozen=True)
class LoaderPlan:
    """How batches are made.

    Args:
        batch: Labeled images a step.
        unlabeled_batch: Unlabeled images a step; as many as labeled ones where null.
        parts: Learn from so many parts of a batch one after another before each step: the loss is that of the whole
            batch, memory that of a part; batch normalization sees a part.
        crop: Side of a view in pixels, or [height, width].
        scales: The set a view's scale is drawn from.
        between: Draw anywhere between the smallest and the largest scale instead.
        flip: Flip half of the views left to right.
        boxes: How many CutMix boxes; 1 is the single-box variant.
        area: Least and greatest share of a view that the boxes cover together.
        mixing: Chance that an image is mixed at all.
        jitter: How far strong views stray, such as {brightness: 0.2, blur: 0}; the defaults of ``Jitter`` where left out.
        published: Resize as the authors' code did: images without smoothing where they shrink, masks by the corner of each
            pixel.
        normalization: "network": the colors the encoder was trained with; "data": the labeled images' own.
        stored: Folder of labels that were stored for the unlabeled images, for methods that learn from such; `dmt` writes
            them itself where null.
        workers: Processes that make batches ahead, at most one a core; no result depends on it.
    """

    batch: int = 4
    unlabeled_batch: int | None = None
    parts: int = 1
    crop: int | tuple[int, int] = 256
    scales: tuple[float, ...] = (0.5, 2.0)
    between: bool = True
    flip: bool = True
    boxes: int = 3
    area: tuple[float, float] = (0.25, 0.5)
    mixing: float = 1.0
    jitter: dict[str, float] | None = None
    published: bool = False
    normalization: Literal["network", "data"] = "network"
    stored: str | Path | None = None
    workers: int = 0

    def __post_init__(self) -> None:
        positive: dict[str, float] = {"batch": self.batch, "unlabeled_batch": self.unlabeled_count, "boxes": self.boxes}
        positive |= {"parts": self.parts, "crop": min(self.size), "scales": min(self.scales, default=0)}
        for name, value in positive.items():
            if value <= 0:
                raise PeersegError(f"loader.{name} is {value!r}, expected a number above 0")
        check_between("loader.workers", self.workers, 0)
        check_between("loader.area", min(self.area), 0)
        check_between("loader.area", max(self.area), 0, 1)
        check_between("loader.mixing", self.mixing, 0, 1)
        if self.batch % self.parts or self.unlabeled_count % self.parts:
            raise PeersegError(
                f"loader.parts is {self.parts!r}, which does not divide {self.batch} labeled and {self.unlabeled_count} unlabeled "
                "images a step: choose a number that divides both"
            )
        _strong(self.jitter)  # a misspelled key is refused before anything slow

    @property
    def size(self) -> tuple[int, int]:
        """(H, W) of a view."""
        return (self.crop, self.crop) if isinstance(self.crop, int) else self.crop

    @property
    def strong(self) -> Jitter:
        """How strong views are drawn."""
        return _strong(self.jitter)

    @property
    def unlabeled_count(self) -> int:
        """Unlabeled images a step."""
        return self.batch if self.unlabeled_batch is None else self.unlabeled_batch


@dataclass(frozen=True)
class EvaluationPlan:
    """How and when the val images judge.

    Args:
        every: Steps between evaluations; each is followed by a checkpoint.
        best: The vote that chooses the best checkpoint; null: "sv", or "single" for one network.
        window: Side of the windows in pixels; null: whole images.
        overlap: Share of a window that the next one shows again.
        flip: Show mirrored images too, and average.
        scales: Show images at these sizes, and average.
        published: As the paper's numbers were made: smaller images padded to the window, networks alone judged by sums of
            logits, votes fused window by window.
    """

    every: int = 200
    best: str | None = None
    window: int | None = None
    overlap: float = 1 / 3
    flip: bool = False
    scales: tuple[float, ...] = (1.0,)
    published: bool = False

    def __post_init__(self) -> None:
        check_between("evaluation.every", self.every, 1)


def _strong(jitter: dict[str, float] | None) -> Jitter:
    return Jitter(**check_section("loader.jitter", jitter or {}, Jitter))
