"""The loss against the naive sum, and where it must be 0 and not a hole."""

import pytest
import torch

from oracle import cross_entropy
from peerseg.methods import cross_supervision, hard_labels, supervision


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
