"""Supervised training of any number of networks: equation (1) alone. The unlabeled images are never seen."""

from collections.abc import Iterator, Sequence

from peerseg.data.batch import Batch
from peerseg.methods.base import Clock, Exchange, Loss, Method, Wants
from peerseg.methods.losses import supervision_of
from peerseg.methods.passes import learn
from peerseg.networks.base import SegmentationNetwork


class Supervised(Method):
    """n networks that learn the same labels and never meet; with n > 1 the ensemble a peer method must beat.

    Args:
        networks: Any number of them.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self, networks: Sequence[SegmentationNetwork], *, hardest: int | None = None, certain: float = 0.7
    ) -> None:
        super().__init__(networks)
        self.supervision = supervision_of(hardest, certain)

    @property
    def wants(self) -> Wants:
        """Nothing of the unlabeled images."""
        return Wants(unlabeled=False)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = sum_i CE(f_i(x), y); see ``Method.losses``."""
        for i in exchange.members:
            logits = learn(self.network(i), batch.images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", self.supervision(logits, batch.masks), completes=(f"network {i + 1}",))
