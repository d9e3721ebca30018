"""The batch of a step, a function of (seed, step): no state, no order of workers."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from peerseg.data.batch import Batch, View
from peerseg.data.color import Jitter, strong_color
from peerseg.data.dataset import Image, SegmentationDataset, Split, UnlabeledImages
from peerseg.data.labels import IGNORE, Mask
from peerseg.data.mixing import draw_boxes
from peerseg.data.orders import Chain, endless
from peerseg.data.randomness import generator
from peerseg.data.stored import StoredLabels
from peerseg.data.views import (
    Floats,
    Geometry,
    draw_geometry,
    full_of,
    inside,
    pad,
    pad_mask,
    standardize,
    unit,
    view_image,
    view_mask,
)
from peerseg.errors import PeersegError

Mixed = Literal["own", "same-image", "neighbor"]
Partner = Literal["none"] | Mixed


@dataclass(frozen=True)
class ViewSettings:
    """How views are drawn.

    Args:
        mean: Of each channel, in unit range.
        std: Of each channel.
        crop: (H, W) of a view.
        scales: The set a scale is drawn from.
        between: Draw anywhere between the smallest and the largest scale instead.
        flip: Whether half of the views are flipped.
        boxes: How many CutMix boxes; 1 is the single-box variant.
        area: Least and greatest share of the view that they cover together.
        mixing: Chance that an image is mixed at all.
        jitter: Of strong views.
        published: Whether images and masks are resized as the authors did.
    """

    mean: tuple[float, ...]
    std: tuple[float, ...]
    crop: tuple[int, int]
    scales: tuple[float, ...] = (1.0,)
    between: bool = False
    flip: bool = True
    boxes: int = 3
    area: tuple[float, float] = (0.25, 0.5)
    mixing: float = 1.0
    jitter: Jitter = field(default_factory=Jitter)
    published: bool = False


@dataclass(frozen=True)
class Wants:
    """Which views a method wants of the unlabeled images.

    Args:
        unlabeled: Whether it looks at them at all.
        strong: How many strong views of each.
        partner: What CutMix mixes in.
        mixed: How many mixed views, each with boxes of its own, where there is a partner.
        stored: Whether it learns labels that were stored for them.
    """

    unlabeled: bool = True
    strong: int = 0
    partner: Partner = "none"
    mixed: int = 1
    stored: bool = False


class BatchStream(Dataset["Batch | Exception"]):
    """Batches by step.

    Args:
        dataset: Of the labeled images.
        split: Labeled and unlabeled ids.
        partly: Labeled ids whose masks hold unlabeled pixels; drawn in the unlabeled stream too where the method
            mixes (it does not cross-supervise labeled images then).
        views: How views are drawn.
        wants: Which views.
        batch: Labeled images a step.
        unlabeled_batch: Unlabeled images a step.
        parts: How many parts both are learned from in.
        seed: Of every draw.
        stored: The stored labels, for methods that want them.
    """

    def __init__(
        self,
        dataset: SegmentationDataset,
        split: Split,
        views: ViewSettings,
        wants: Wants,
        *,
        partly: Sequence[str] = (),
        batch: int = 4,
        unlabeled_batch: int = 4,
        parts: int = 1,
        seed: int = 0,
        stored: StoredLabels | None = None,
    ) -> None:
        if wants.stored and stored is None:
            raise PeersegError("the method learns labels that were stored for the unlabeled images: give loader.stored")
        if wants.partner == "neighbor" and unlabeled_batch // parts % 2:
            raise PeersegError(
                f"{unlabeled_batch // parts} unlabeled images a step have no pairs to mix: set loader.unlabeled_batch to an even "
                "number (for each of loader.parts) or method.partner to 'own'"
            )
        if wants.unlabeled and not split.unlabeled and not (partly and wants.partner != "none"):
            raise PeersegError(
                "there is no unlabeled image to learn from: add images without masks, or learn from the labeled ones alone with "
                "--method.name supervised"
            )
        self._dataset, self._labeled = dataset, split.labeled
        self._unlabeled = UnlabeledImages(dataset, split.unlabeled)
        self._partly = dict.fromkeys(partly) if wants.partner != "none" else {}
        self._views, self._wants, self._stored = views, wants, stored
        self._batch, self._unlabeled_batch, self._seed = batch, unlabeled_batch, seed

    def __getitem__(self, step: int) -> "Batch | Exception":
        # An exception would reach the reader as a worker's traceback; as a value it stays one sentence.
        try:
            return self.batch(step)
        except PeersegError as error:
            return error
        except Exception:  # ours, to be shown whole; raised in a worker it would keep the program from ending
            return RuntimeError(traceback.format_exc())

    def batch(self, step: int) -> Batch:
        """The batch of one step.

        Args:
            step: Counted from 0.

        Returns:
            The batch; the same at every call.
        """
        ids = [endless(self._labeled, step * self._batch + k, self._seed, "labeled") for k in range(self._batch)]
        shown = [self._labeled_view(id, step, slot) for slot, id in enumerate(ids)]
        batch = Batch(
            images=torch.from_numpy(np.stack([image for image, _, _ in shown])),
            masks=torch.from_numpy(np.stack([mask for _, mask, _ in shown])),
            inside=torch.from_numpy(np.stack([inside(geometry) for _, _, geometry in shown])),
            files=tuple(self._dataset.file(id) for id in ids),
        )
        return self._with_unlabeled(batch, step) if self._wants.unlabeled else batch

    def _with_unlabeled(self, batch: Batch, step: int) -> Batch:
        unlabeled, places = self._unlabeled_view(step, "unlabeled", "unlabeled")
        batch = replace(batch, unlabeled=unlabeled, files=(*batch.files, *places))
        if self._wants.partner == "none":
            return batch
        batch = replace(batch, boxes=tuple(self._boxes(step, k) for k in range(self._wants.mixed)))
        if self._wants.partner == "neighbor":
            return batch
        order = "partner" if self._wants.partner == "own" else "unlabeled"
        partner, places = self._unlabeled_view(step, order, "partner")
        return replace(batch, partner=partner, files=(*batch.files, *places))

    def _boxes(self, step: int, k: int) -> torch.Tensor:
        views, place, drawn = self._views, ("boxes", k) if k else ("boxes",), []
        for slot in range(self._unlabeled_batch):
            random = generator(self._seed, step, slot, *place)
            boxes = draw_boxes(random, *views.crop, count=views.boxes, smallest=views.area[0], largest=views.area[1])
            drawn.append(boxes & (random.random() < views.mixing))
        return torch.from_numpy(np.stack(drawn))

    def _labeled_view(self, id: str, step: int, slot: int) -> tuple[npt.NDArray[np.float32], Mask, Geometry]:
        mask = self._dataset.mask(id)
        assert mask is not None, "inspect has seen every labeled mask"
        image = self._dataset.image(id)
        self._check_channels(image.shape[2], self._dataset.file(id))
        geometry = self._geometry(image.shape[:2], generator(self._seed, step, slot, "labeled"))
        shown = self._finish(self._shown(image, geometry), full_of(image), geometry)
        known = view_mask(mask, geometry, published=self._views.published)
        return shown, pad_mask(known, geometry), geometry

    def _unlabeled_view(self, step: int, order: str, stream: str) -> tuple[View, tuple[str, ...]]:
        pool = Chain(self._unlabeled.ids, tuple(self._partly))
        first = step * self._unlabeled_batch
        ids = [endless(pool, first + k, self._seed, order) for k in range(self._unlabeled_batch)]
        parts = [self._one_unlabeled(id, step, slot, stream) for slot, id in enumerate(ids)]
        labels, confidence = self._labels(ids, step, stream)
        view = View(
            images=torch.from_numpy(np.stack([views[0] for views, _ in parts])),
            inside=torch.from_numpy(np.stack([shown for _, shown in parts])),
            strong=tuple(
                torch.from_numpy(np.stack([views[1 + k] for views, _ in parts])) for k in range(self._wants.strong)
            ),
            labels=labels,
            confidence=confidence,
        )
        return view, tuple(self._unlabeled.file(id) for id in ids)

    def _labels(self, ids: Sequence[str], step: int, stream: str) -> tuple[torch.Tensor | None, torch.Tensor | None]:
        """The stored labels of some images and their confidence, as the views show them."""
        if not self._wants.stored:
            return None, None
        assert self._stored is not None, "asked for in `__init__`"
        known, sure = [], []
        for slot, id in enumerate(ids):
            labels, confidence = self._stored.read(id)
            geometry = self._geometry(labels.shape, generator(self._seed, step, slot, stream))
            known.append(pad_mask(view_mask(labels, geometry, published=self._views.published), geometry))
            sure.append(pad(view_mask(confidence, geometry, published=self._views.published), geometry, 0.0))
        return torch.from_numpy(np.stack(known)), torch.from_numpy(np.stack(sure))

    def _one_unlabeled(
        self, id: str, step: int, slot: int, stream: str
    ) -> tuple[list[npt.NDArray[np.float32]], npt.NDArray[np.bool_]]:
        image = self._unlabeled.image(id)
        self._check_channels(image.shape[2], self._unlabeled.file(id))
        geometry = self._geometry(image.shape[:2], generator(self._seed, step, slot, stream))
        weak, full = self._shown(image, geometry), full_of(image)
        strong = [
            strong_color(unit(weak, full), self._views.jitter, generator(self._seed, step, slot, stream, "strong", k))
            for k in range(self._wants.strong)
        ]
        shown = inside(geometry)
        if id in self._partly:
            mask = self._dataset.mask(id)
            assert mask is not None, "a partly labeled image has a mask"
            known = view_mask(mask, geometry, published=self._views.published)
            shown = shown & (pad_mask(known, geometry) != IGNORE)
        views = [self._finish(weak, full, geometry), *(self._finish(view, 1.0, geometry) for view in strong)]
        return views, shown

    def _geometry(self, size: tuple[int, ...], random: np.random.Generator) -> Geometry:
        views = self._views
        return draw_geometry(
            random, (size[0], size[1]), views.crop, views.scales, between=views.between, flip=views.flip
        )

    def _shown(self, image: Image, geometry: Geometry) -> Image:
        return view_image(image, geometry, published=self._views.published)

    def _finish(self, image: Image, full: float, geometry: Geometry) -> Floats:
        return standardize(image, full, self._views.mean, self._views.std, geometry)

    def _check_channels(self, channels: int, file: str) -> None:
        if channels != len(self._views.mean):
            raise PeersegError(
                f"{file!r} has {channels} channels, expected {len(self._views.mean)} as in the first labeled image: convert it"
            )
