"""n-CPS with CutMix against Algorithm 2, transcribed naively in double precision."""

import pytest
import torch
from torch import Tensor

from oracle import algorithm_2, batch, cross_entropy, gradients, networks, passes
from peerseg.data.batch import View
from peerseg.data.mixing import mix
from peerseg.errors import PeersegError
from peerseg.experiment.reading import protocol_overrides
from peerseg.methods import Clock, NCPSCutMix
from peerseg.placement.single import Together

CLOCK = Clock(seed=3, step=5, steps=10)


def _tensors(parts: list[torch.nn.Module]) -> tuple[Tensor, Tensor]:
    grads = torch.cat([p.grad.flatten() for part in parts for p in part.parameters() if p.grad is not None])
    buffers = [b.flatten().double() for part in parts for name, b in part.named_buffers() if "running" in name]
    return grads, torch.cat(buffers)


def _neighbors(view: View) -> View:
    order = [1, 0, 3, 2]
    return View(view.images[order], view.inside[order], (view.strong[0][order],))


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("partner", ["own", "neighbor"])
@pytest.mark.parametrize("counted", ["inside", "all"])
@pytest.mark.parametrize("strong", [False, True])
def test_gradients_and_statistics_are_those_of_algorithm_2(
    count: int, partner: str, counted: str, strong: bool
) -> None:
    given, reference = batch(partner=partner == "own"), networks(count, dropout=0)
    assert given.unlabeled is not None
    second = given.partner or _neighbors(given.unlabeled)
    inside = mix(given.unlabeled.inside, second.inside, given.boxes[0])
    run = passes(reference, CLOCK)

    def label(j: int, images: Tensor, view: str) -> Tensor:
        reference[j].eval()
        with torch.no_grad():
            logits = run(j, images, view)
        reference[j].train()
        return logits

    pixels = inside if counted == "inside" else torch.ones_like(inside)
    algorithm_2(run, label, given, second, pixels, count=count, weight=1.5, strong=strong).backward()

    method = NCPSCutMix(networks(count, dropout=0), ramp=0, counted=counted, partner=partner, strong=strong)
    for loss in method.losses(given, Together(count), CLOCK):
        loss.value.backward()

    (wanted, statistics), (got, own) = _tensors(list(reference)), _tensors(list(method.networks))
    assert (got - wanted).abs().max() <= 1e-12 * wanted.abs().max()
    assert torch.equal(own, statistics)


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_both_protocols_are_algorithm_2_for_any_n(protocol: str, count: int) -> None:
    given, reference = batch(partner=True, unlabeled=3, side=8), networks(count)
    assert given.unlabeled is not None
    assert given.partner is not None
    run = passes(reference, CLOCK)

    def label(j: int, images: Tensor, view: str) -> Tensor:
        with torch.no_grad():
            return run(j, images, view)

    everywhere = torch.ones_like(given.unlabeled.inside)
    algorithm_2(run, label, given, given.partner, everywhere, count=count, weight=1.5, strong=False).backward()
    published = {
        name.removeprefix("method."): value for name, value in protocol_overrides(protocol, "ncps-cutmix").items()
    }
    method = NCPSCutMix(networks(count), **published)
    for loss in method.losses(given, Together(count), CLOCK):
        loss.value.backward()

    # Labels are made in training mode, and move the running statistics before the passes that learn.
    (wanted, statistics), (got, own) = _tensors(list(reference)), _tensors(list(method.networks))
    assert (got - wanted).abs().max() <= 1e-12 * wanted.abs().max()
    assert torch.equal(own, statistics)
    assert method.wants.partner == {"paper": "own", "code": "same-image"}[protocol]


def test_a_threshold_takes_votes_away_but_not_pixels_from_the_mean() -> None:
    given = batch()
    sure = NCPSCutMix(networks(2), ramp=0, threshold=0.999999)
    losses = {loss.name: float(loss.value.detach()) for loss in sure.losses(given, Together(2), CLOCK)}
    assert losses["cross1"] == 0.0
    half = NCPSCutMix(networks(2), ramp=0, labels="train", threshold=0.5)
    every = NCPSCutMix(networks(2), ramp=0, labels="train")
    some, full = (
        next(float(loss.value.detach()) for loss in method.losses(given, Together(2), CLOCK))
        for method in (half, every)
    )
    assert 0 < some < full


def test_what_a_method_wants_follows_from_its_settings() -> None:
    wants = NCPSCutMix(networks(2), partner="same-image", strong=False).wants
    assert (wants.unlabeled, wants.strong, wants.partner) == (True, 0, "same-image")
    assert NCPSCutMix(networks(2)).wants.strong == 1


def test_a_lonely_network_and_unknown_words_are_refused() -> None:
    with pytest.raises(PeersegError, match="at least 2"):
        NCPSCutMix(networks(1))
    with pytest.raises(PeersegError, match=r"method\.partner is 'other', expected one of own, same-image, neighbor"):
        NCPSCutMix(networks(2), partner="other")


def test_pixels_count_by_the_share_of_peers_that_agree() -> None:
    given, reference = batch(), networks(4, dropout=0)
    method = NCPSCutMix(networks(4, dropout=0), ramp=0, agreement=True)
    values = {loss.name: loss.value.detach() for loss in method.losses(given, Together(4), CLOCK)}
    assert given.unlabeled is not None
    second, boxes = _neighbors(given.unlabeled), given.boxes[0]
    inside = mix(given.unlabeled.inside, second.inside, boxes)
    mixed = mix(given.unlabeled.strong[0], second.strong[0], boxes)
    with torch.no_grad():
        logits = reference[0](mixed)
        answers = []
        for network in reference[1:]:
            network.eval()
            answers.append(mix(network(given.unlabeled.images).argmax(1), network(second.images).argmax(1), boxes))
    wanted = 0.0
    for b in range(4):
        for row, column in inside[b].nonzero().tolist():
            said = [int(answer[b, row, column]) for answer in answers]
            share = max(said.count(name) for name in said) / 3
            log_p = torch.log_softmax(logits[b, :, row, column], 0)
            wanted += 1.5 * share * float(-log_p[said].mean()) / int(inside[b].sum()) / 4
    assert float(values["cross1"]) == pytest.approx(wanted, rel=1e-6)


def test_networks_may_learn_labeled_images_of_their_own() -> None:
    given = batch(labeled=4)
    method = NCPSCutMix(networks(2, dropout=0), weight=0, apart=True)
    for loss in method.losses(given, Together(2), CLOCK):
        loss.value.backward()
    for k, network in enumerate(networks(2, dropout=0)):
        own = slice(2 * k, 2 * k + 2)
        cross_entropy(network(given.images[own]), given.masks[own], given.masks[own] < 254).backward()
        wanted, got = gradients(network), gradients(method.network(k))
        assert (got - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_labeled_images_that_cannot_be_divided_are_refused() -> None:
    method = NCPSCutMix(networks(3), apart=True)
    with pytest.raises(PeersegError, match=r"4 labeled images cannot be divided among 3 networks: set loader\.batch"):
        list(method.losses(batch(labeled=4), Together(3), CLOCK))
