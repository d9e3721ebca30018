"""DMT, dynamic mutual training: a network learns stored labels of another one, less where the two disagree."""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from peerseg.data.batch import Batch
from peerseg.data.labels import UNLABELED
from peerseg.errors import check_between
from peerseg.methods.base import Clock, Exchange, Loss, Method, Wants
from peerseg.methods.losses import cross_supervision, probabilities, supervision_of
from peerseg.methods.passes import learn
from peerseg.methods.views import unlabeled_of
from peerseg.networks.base import SegmentationNetwork
from peerseg.networks.choosing import choose


class DMT(Method):
    """One round of DMT. Without stored labels (`loader.stored`) a run makes all rounds before it, in its own folder.

    Args:
        networks: What learns; with several, all learn the same labels.
        rounds: How often labels are stored and learned. Before them two networks learn the labeled images alone; a round
            trains either one with the other's labels, of which it takes a growing share, the surest. `steps` are those of
            one network in one round.
        agreeing: Where the network says what the stored label says, the pixel counts by its probability to this power.
        disagreeing: Where it says otherwise, but is no surer than whoever stored the label was, likewise; where it is
            surer, the pixel does not count.
        hardest: Learn the labels of at least this many pixels of each image, the hardest ones (OHEM, as published for
            Cityscapes); null: of all pixels.
        certain: With `hardest`: pixels whose class has at most this probability count too.
    """

    def __init__(
        self,
        networks: Sequence[SegmentationNetwork],
        *,
        rounds: int = 5,
        agreeing: float = 5.0,
        disagreeing: float = 5.0,
        hardest: int | None = None,
        certain: float = 0.7,
    ) -> None:
        check_between("method.rounds", rounds, 1)
        check_between("method.agreeing", agreeing, 0)
        check_between("method.disagreeing", disagreeing, 0)
        super().__init__(networks)
        self.supervision = supervision_of(hardest, certain)
        self.agreeing, self.disagreeing = agreeing, disagreeing

    @property
    def wants(self) -> Wants:
        """Unlabeled images with the labels that were stored for them."""
        return Wants(stored=True)

    def losses(self, batch: Batch, exchange: Exchange, clock: Clock) -> Iterator[Loss]:
        """L = CE(f(x), y) and w CE(f(u), stored y) as one mean over all images; see ``Method.losses``."""
        view = unlabeled_of(batch)
        assert view.labels is not None, "asked for in `wants`"
        assert view.confidence is not None, "asked for in `wants`"
        images, known = torch.cat([batch.images, view.images]), len(batch.images)
        for i in exchange.members:
            logits = learn(self.network(i), images, clock, i, "both")
            weights = self._weights(logits[known:].detach(), view.labels, view.confidence)
            stored = cross_supervision(
                logits[known:], view.labels[None], view.inside & (view.labels < UNLABELED), weights
            )
            loss = (known * self.supervision(logits[:known], batch.masks) + len(view.images) * stored) / len(images)
            yield Loss(f"mutual{i + 1}", loss, completes=(f"network {i + 1}",))
            del logits, stored, loss  # the graph is done with: it must not live while the next one grows

    def _weights(self, logits: Tensor, labels: Tensor, confidence: Tensor) -> Tensor:
        """(B, H, W): p_y^g where the network agrees, or disagrees without being surer; otherwise 0."""
        p = probabilities(logits)
        likely = p.gather(1, torch.where(labels < p.shape[1], labels, 0).long()[:, None])[:, 0]
        agrees, surer = choose(logits) == labels, p.amax(dim=1) > confidence
        return torch.where(agrees, likely**self.agreeing, torch.where(surer, 0.0, likely**self.disagreeing))
