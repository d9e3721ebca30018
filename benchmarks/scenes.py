"""What a measured step learns with: networks from seeds, and a batch of noise with every kind of pixel."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from peerseg.data.batch import Batch, View
from peerseg.data.labels import IGNORE, UNLABELED
from peerseg.data.mixing import draw_boxes
from peerseg.data.randomness import generator
from peerseg.experiment.build import seeded
from peerseg.methods import Clock, Method
from peerseg.networks import SegmentationNetwork, SmallNetwork, deeplabv3plus, library
from peerseg.placement import OneProcess
from peerseg.training.loop import back_propagate

CLOCK = Clock(seed=0, step=50, steps=100)


@dataclass(frozen=True)
class Scene:
    """Networks and the size of what they are shown.

    Args:
        name: What the networks are.
        make: Makes one network.
        classes: Of it.
        side: Of a view, in pixels.
        batch: Images of each kind a step.
        dtype: Of weights and images.
    """

    name: str
    make: Callable[[], SegmentationNetwork]
    classes: int
    side: int
    batch: int
    dtype: torch.dtype = torch.float32

    def networks(self, count: int) -> list[SegmentationNetwork]:
        """Networks with weights of their own, the same at every call.

        Args:
            count: n.

        Returns:
            The networks.
        """
        made = []
        for k in range(count):
            with seeded(0, "network", k):
                made.append(self.make().to(self.dtype))
        return made

    def views(self, *, partner: bool = True) -> Batch:
        """A batch of noise: padding, ignored and unlabeled pixels, strong views, boxes.

        Args:
            partner: Whether a partner is drawn.

        Returns:
            The batch.
        """
        random = torch.Generator().manual_seed(0)
        shape = (self.batch, self.side, self.side)
        masks = torch.randint(0, self.classes, shape, generator=random, dtype=torch.uint8)
        masks[:, : self.side // 8], masks[:, -self.side // 8 :] = IGNORE, UNLABELED
        boxes = [torch.from_numpy(draw_boxes(generator(0, k), self.side, self.side)) for k in range(self.batch)]
        unlabeled, other = self._view(random), self._view(random) if partner else None
        return Batch(self._images(random), masks, self._inside(), unlabeled, other, (torch.stack(boxes),))

    def _view(self, random: torch.Generator) -> View:
        return View(self._images(random), self._inside(), (self._images(random),))

    def _images(self, random: torch.Generator) -> Tensor:
        return torch.randn(self.batch, 3, self.side, self.side, generator=random, dtype=self.dtype)

    def _inside(self) -> Tensor:
        inside = torch.ones(self.batch, self.side, self.side, dtype=torch.bool)
        inside[:, :, : self.side // 10] = False
        return inside


def small(side: int = 64, batch: int = 8) -> Scene:
    """The network of the demo."""
    return Scene("small", lambda: SmallNetwork(6, width=24), 6, side, batch)


def lite(side: int = 256, batch: int = 4) -> Scene:
    """The network of the recipe ``folder``, without its first weights."""
    name = "efficientnet_lite0"
    return Scene(name, lambda: library("DeepLabV3Plus", name, 11, weights=None), 11, side, batch)


def paper(encoder: str = "resnet50s", side: int = 129, batch: int = 2, dtype: torch.dtype = torch.float32) -> Scene:
    """The network of the paper."""
    return Scene(encoder, lambda: deeplabv3plus(encoder, 21, weights=None), 21, side, batch, dtype)


def learn_step(method: Method, batch: Batch, placement: OneProcess) -> None:
    """What the loop does with a batch, up to the optimizer.

    Args:
        method: Already placed.
        batch: Already moved.
        placement: Where.
    """
    with placement.learning():
        for loss in method.losses(batch, placement.exchange, CLOCK):
            back_propagate(loss, placement.share)


def clear(method: Method | list[SegmentationNetwork]) -> None:
    """Forget gradients.

    Args:
        method: Whose, or networks.
    """
    for part in method if isinstance(method, list) else [method]:
        part.zero_grad(set_to_none=True)
