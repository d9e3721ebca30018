"""FixMatch and UniMatch against their equations, transcribed naively in double precision."""

import pytest
import torch
from torch import Tensor

from oracle import batch, cross_entropy, gradients, learned, networks
from peerseg.data.batch import View
from peerseg.errors import PeersegError
from peerseg.methods import Clock, FixMatch, UniMatch
from peerseg.networks import SmallNetwork

CLOCK = Clock(seed=3, step=5, steps=10)
SURE = 0.4


def sure_entropy(logits: Tensor, soft: Tensor, counted: Tensor) -> Tensor:
    """Pixels that are not sure add nothing, and the mean divides by all that count."""
    chosen = soft.amax(1) > SURE
    images = []
    for b in range(len(logits)):
        total = cross_entropy(logits[b : b + 1], soft[b : b + 1].argmax(1), (counted & chosen)[b : b + 1])
        images.append(total * (counted & chosen)[b].sum() / counted[b].sum())
    return torch.stack(images).mean()


def labels(network: SmallNetwork, view: View | None) -> Tensor:
    assert view is not None
    with torch.no_grad():
        soft = network.eval()(view.images).softmax(1)
    network.train()
    return soft


@pytest.mark.parametrize("method", [FixMatch, UniMatch])
def test_gradients_are_those_of_the_equation(method: type[FixMatch] | type[UniMatch]) -> None:
    given, (network,) = batch(partner=True), networks(1, dropout=0)
    first, second = given.unlabeled, given.partner
    assert first is not None
    assert second is not None
    ones, others = labels(network, first), labels(network, second)
    total = torch.zeros((), dtype=torch.float64)
    shares = (1.0,) if method is FixMatch else (0.25, 0.25)
    for k, share in enumerate(shares):
        m = given.boxes[k][:, None].double()
        logits = network((1 - m) * first.strong[k] + m * second.strong[k])
        inside = torch.where(given.boxes[k], second.inside, first.inside)
        total = total + 2.0 * share * sure_entropy(logits, (1 - m) * ones + m * others, inside)
    if method is UniMatch:
        total = total + 2.0 * 0.5 * sure_entropy(network(first.images), ones, first.inside)
    (total + cross_entropy(network(given.images), given.masks, given.masks < 254)).backward()

    options = {"weight": 2.0, "threshold": SURE, "partner": "own"} | ({} if method is FixMatch else {"drop": 0.0})
    made = method(networks(1, dropout=0), **options)
    learned(made, given, CLOCK)
    wanted = gradients(network)
    assert (gradients(made.networks) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_unimatch_drops_whole_channels_of_every_feature(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[list[Tensor]] = []
    decode = SmallNetwork.decode

    def noted(network: SmallNetwork, features: list[Tensor]) -> Tensor:
        shown.append(features)
        return decode(network, features)

    monkeypatch.setattr(SmallNetwork, "decode", noted)
    learned(UniMatch(networks(1), drop=0.5), batch(side=32), CLOCK)
    (disturbed,) = [features for features in shown if all(_dropped(feature) for feature in features)]
    assert 0.3 < torch.cat([(f.flatten(2) == 0).all(2).flatten().double() for f in disturbed]).mean() < 0.8


def _dropped(feature: Tensor) -> bool:
    return bool((feature.flatten(2) == 0).all(2).any())


def test_unimatch_wants_two_strong_views_and_boxes_for_each() -> None:
    wants = UniMatch(networks(1)).wants
    assert (wants.strong, wants.mixed, wants.partner) == (2, 2, "neighbor")


@pytest.mark.parametrize("method", [FixMatch, UniMatch])
def test_settings_that_mean_nothing_are_refused(method: type[FixMatch]) -> None:
    with pytest.raises(PeersegError, match=r"method\.threshold is 2"):
        method(networks(1), threshold=2)
    with pytest.raises(PeersegError, match=r"method\.partner is 'x'"):
        method(networks(1), partner="x")
    with pytest.raises(PeersegError, match=r"method\.labels is 'x'"):
        method(networks(1), labels="x")
    with pytest.raises(PeersegError, match=r"method\.counted is 'x'"):
        method(networks(1), counted="x")


def test_a_share_of_channels_is_a_share() -> None:
    with pytest.raises(PeersegError, match=r"method\.drop is 2"):
        UniMatch(networks(1), drop=2)
