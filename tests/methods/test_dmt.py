"""DMT against its equation, transcribed naively in double precision."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from oracle import batch, cross_entropy, gradients, learned, networks
from peerseg.data.batch import Batch
from peerseg.errors import PeersegError
from peerseg.methods import DMT, Clock

CLOCK = Clock(seed=3, step=5, steps=10)


def test_gradients_are_those_of_the_equation() -> None:
    given, (network,) = batch(), networks(1, dropout=0)
    view = given.unlabeled
    assert view is not None
    assert view.labels is not None
    assert view.confidence is not None
    logits = network(torch.cat([given.images, view.images]))
    parts, kinds = [], set()
    for b in range(4):
        total, counted = torch.zeros((), dtype=torch.float64), 0
        for row in range(16):
            for column in range(16):
                label, sure = int(view.labels[b, row, column]), float(view.confidence[b, row, column])
                if label == 255 or not view.inside[b, row, column]:
                    continue
                counted += 1
                p = logits[2 + b, :, row, column].softmax(0)
                q = p.detach()
                if int(q.argmax()) == label:
                    kind, weight = "agrees", float(q[label]) ** 4
                elif float(q.max()) > sure:
                    kind, weight = "surer", 0.0
                else:
                    kind, weight = "doubts", float(q[label]) ** 2
                kinds.add(kind)
                total = total - weight * torch.log(p[label])
        parts.append(total / counted)
    known = cross_entropy(logits[:2], given.masks, given.masks < 254)
    (2 / 6 * known + 4 / 6 * torch.stack(parts).mean()).backward()
    assert kinds == {"agrees", "surer", "doubts"}

    method = DMT(networks(1, dropout=0), agreeing=4.0, disagreeing=2.0)
    learned(method, given, CLOCK)
    wanted = gradients(network)
    assert (gradients(method) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_several_networks_learn_the_same_labels() -> None:
    method = DMT(networks(2))
    assert list(learned(method, batch(), CLOCK)) == ["mutual1", "mutual2"]


def test_it_wants_stored_labels() -> None:
    assert DMT(networks(1)).wants.stored


def test_an_image_without_any_stored_label_adds_nothing() -> None:
    given = batch()
    assert given.unlabeled is not None
    assert given.unlabeled.labels is not None
    empty = replace(given, unlabeled=replace(given.unlabeled, labels=torch.full_like(given.unlabeled.labels, 255)))

    def value(one: Batch) -> Tensor:
        return torch.tensor(learned(DMT(networks(1, dropout=0)), one, CLOCK)["mutual1"])

    assert 0 < value(empty) < value(given)


@pytest.mark.parametrize("options", [{"rounds": 0}, {"agreeing": -1.0}, {"disagreeing": -1.0}])
def test_settings_that_mean_nothing_are_refused(options: dict[str, float]) -> None:
    name, value = next(iter(options.items()))
    with pytest.raises(PeersegError, match=f"method.{name} is {value}"):
        DMT(networks(1), **options)
