"""The loss against the naive sum, and where it must be 0 and not a hole."""

import pytest
import torch

from oracle import batch, cross_entropy, hard_pixels, networks, squared_distance
from peerseg import methods
from peerseg.errors import PeersegError
from peerseg.methods import NCPS, NCPSCutMix, Supervised, consistency, cross_supervision, hard_labels, supervision
from peerseg.methods.base import Clock
from peerseg.methods.losses import agreement
from peerseg.methods.passes import learn
from peerseg.placement.single import Together


def _random(peers: int = 2) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    random = torch.Generator().manual_seed(0)
    logits = torch.randn(2, 4, 5, 6, generator=random, dtype=torch.float64, requires_grad=True)
    labels = torch.randint(0, 4, (peers, 2, 5, 6), generator=random, dtype=torch.uint8)
    counted = torch.rand(2, 5, 6, generator=random) < 0.7
    return logits, labels, counted


@pytest.mark.parametrize("peers", [1, 2, 7])
def test_one_log_softmax_gives_the_mean_over_all_peers(peers: int) -> None:
    logits, labels, counted = _random(peers)
    wanted = torch.stack([cross_entropy(logits, one, counted) for one in labels]).mean()
    assert cross_supervision(logits, labels, counted).item() == pytest.approx(wanted.item(), rel=1e-12)


def test_a_rejected_pixel_casts_no_vote_and_stays_in_the_divisor() -> None:
    logits, labels, counted = _random(1)
    rejected = labels.clone()
    rejected[0, :, :2] = 255
    without = cross_supervision(logits, rejected, counted)
    voted = counted.clone()
    voted[:, :2] = False
    parts = [
        cross_entropy(logits[b : b + 1], labels[0, b : b + 1], voted[b : b + 1]) * voted[b].sum() / counted[b].sum()
        for b in range(2)
    ]
    assert without.item() == pytest.approx(torch.stack(parts).mean().item(), rel=1e-12)


def test_supervision_counts_classes_only() -> None:
    logits, labels, _ = _random(1)
    masks = labels[0].clone()
    masks[0, 0], masks[1, :, 3] = 255, 254
    wanted = cross_entropy(logits, masks, masks < 254)
    assert supervision(logits, masks).item() == pytest.approx(wanted.item(), rel=1e-12)


@pytest.mark.parametrize("state", [254, 255])
def test_an_image_without_a_label_adds_zero_and_no_gradient(state: int) -> None:
    logits, labels, _ = _random(1)
    masks = labels[0].clone()
    masks[1] = state
    loss = supervision(logits, masks)
    loss.backward()
    assert logits.grad is not None
    assert loss.item() == pytest.approx(supervision(logits[:1], masks[:1]).item() / 2, rel=1e-12)
    assert not logits.grad[1].any()
    assert logits.grad.isfinite().all()


def test_hard_labels_are_bytes_and_reject_below_the_threshold() -> None:
    logits = torch.tensor([[[[2.0, 0.1]], [[0.0, 0.0]]]])
    assert hard_labels(logits).tolist() == [[[0, 0]]]
    assert hard_labels(logits, threshold=0.6).tolist() == [[[0, 255]]]
    assert hard_labels(logits).dtype == torch.uint8


@pytest.mark.parametrize("hardest", [1, 7, 19, 20, 24, 30, 500])
@pytest.mark.parametrize("certain", [0.0, 0.2, 0.7, 1.0])
def test_hard_pixels_are_those_of_a_whole_sort(hardest: int, certain: float) -> None:
    logits, labels, _ = _random(1)
    masks = labels[0].clone()
    masks[0, 0], masks[1, :, 3], masks[1, 2] = 255, 254, 255
    assert (masks < 254).sum(dim=(1, 2)).tolist() == [24, 20], "above and below what is asked for"
    kept = hard_pixels(3 * logits, masks, hardest, certain)
    assert torch.equal(methods.hard_pixels(3 * logits, masks, hardest, certain), kept)
    loss = supervision(3 * logits, masks, hardest, certain)
    assert loss.item() == pytest.approx(cross_entropy(3 * logits, masks, kept).item(), rel=1e-12)


def test_mining_keeps_the_hardest_and_all_that_are_uncertain() -> None:
    logits = torch.tensor([4.0, 3.0, 2.0, 0.2, -1.0])
    scores = torch.stack([logits, torch.zeros(5)])[None, :, None]
    masks = torch.zeros(1, 1, 5, dtype=torch.uint8)
    assert methods.hard_pixels(scores, masks, 3, 0.7).tolist() == [[[False, False, True, True, True]]]
    assert methods.hard_pixels(scores, masks, 1, 0.7).tolist() == [[[False, False, False, True, True]]]
    assert methods.hard_pixels(scores, masks, 9, 0.7).all()


def test_an_image_without_a_label_has_no_hard_pixels() -> None:
    logits, labels, _ = _random(1)
    assert supervision(logits, torch.full_like(labels[0], 255), 5).item() == 0


@pytest.mark.parametrize("method", [Supervised, NCPS, NCPSCutMix])
def test_every_method_mines_its_supervised_term(method: type[NCPS]) -> None:
    given = batch()
    values = []
    for made in (method(networks(2)), method(networks(2), hardest=20, certain=0.3)):
        losses = made.losses(given, Together(2), Clock(seed=3, step=5, steps=10))
        values.append(sum(float(loss.value.detach()) for loss in losses))
    logits = [
        learn(net, given.images, Clock(seed=3, step=5, steps=10), i, "labeled") for i, net in enumerate(networks(2))
    ]
    every = [cross_entropy(own, given.masks, given.masks < 254) for own in logits]
    hard = [cross_entropy(own, given.masks, hard_pixels(own, given.masks, 20, 0.3)) for own in logits]
    assert values[1] - values[0] == pytest.approx(float((sum(hard) - sum(every)).detach()), rel=1e-9)


@pytest.mark.parametrize(
    ("settings", "words"), [({"hardest": 0}, "method.hardest is 0"), ({"certain": 1.5}, "method.certain is 1.5")]
)
def test_mining_that_means_nothing_is_refused(settings: dict[str, float], words: str) -> None:
    with pytest.raises(PeersegError, match=words):
        Supervised(networks(1), **settings)


def test_weights_count_votes_and_the_mean_divides_by_pixels_all_the_same() -> None:
    random = torch.Generator().manual_seed(4)
    logits = torch.randn(2, 4, 3, 3, dtype=torch.float64, generator=random).requires_grad_()
    labels = torch.randint(0, 4, (2, 2, 3, 3), dtype=torch.uint8, generator=random)
    counted = torch.rand(2, 3, 3, generator=random) < 0.7
    weights = torch.rand(2, 3, 3, dtype=torch.float64, generator=random)
    images = []
    for b in range(2):
        total = torch.zeros((), dtype=torch.float64)
        for row, column in counted[b].nonzero().tolist():
            log_p = torch.log_softmax(logits[b, :, row, column], 0)
            for k in range(2):
                total = total - weights[b, row, column] * log_p[int(labels[k, b, row, column])] / 2
        images.append(total / int(counted[b].sum()))
    (wanted,) = torch.autograd.grad(torch.stack(images).mean(), logits)
    (got,) = torch.autograd.grad(cross_supervision(logits, labels, counted, weights), logits)
    assert (got - wanted).abs().max() <= 1e-14


def test_agreement_is_the_largest_share_of_peers_that_say_the_same() -> None:
    labels = torch.tensor([[0, 1, 2, 255], [0, 1, 1, 255], [0, 2, 0, 3]], dtype=torch.uint8)[:, None, None]
    assert torch.allclose(agreement(labels), torch.tensor([[[1, 2 / 3, 1 / 3, 1 / 3]]]))
    silent = torch.full((2, 1, 1, 1), 255, dtype=torch.uint8)
    assert agreement(silent).item() == 0


@pytest.mark.parametrize("weighted", [False, True])
def test_consistency_is_the_mean_of_squared_distances(weighted: bool) -> None:
    random = torch.Generator().manual_seed(5)
    logits, other = torch.randn(2, 3, 4, 5, 5, dtype=torch.float64, generator=random)
    counted = torch.rand(3, 5, 5, generator=random) < 0.6
    counted[1] = False
    target, weights = other.softmax(1), torch.tensor([0.5, 1.0, 0.25]).double()
    parts = [squared_distance(logits[b : b + 1], target[b : b + 1], counted[b : b + 1]) for b in range(3)]
    wanted = sum((weights[b] if weighted else 1) * part for b, part in enumerate(parts)) / 3
    assert torch.allclose(consistency(logits, target, counted, weights if weighted else None), wanted, rtol=1e-14)
