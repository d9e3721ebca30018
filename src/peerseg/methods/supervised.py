"""Supervised training of any number of networks: equation (1) alone. The unlabeled images are never seen."""

from collections.abc import Iterator

from peerseg.data.batch import Batch
from peerseg.methods.base import Clock, Exchange, Loss, Method, Wants
from peerseg.methods.losses import supervision
from peerseg.methods.passes import learn


class Supervised(Method):
    """n networks that learn the same labels and never meet; with n > 1 the ensemble a peer method must beat."""

    @property
    def wants(self) -> Wants:
        """Nothing of the unlabeled images."""
        return Wants(unlabeled=False)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = sum_i CE(f_i(x), y); see ``Method.losses``."""
        for i in exchange.members:
            logits = learn(self.network(i), batch.images, clock, i, "labeled")
            yield Loss(f"supervised{i + 1}", supervision(logits, batch.masks), completes=(f"network {i + 1}",))
