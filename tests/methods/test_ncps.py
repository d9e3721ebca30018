"""n-CPS against Algorithm 1, transcribed naively in double precision."""

import pytest
import torch

from oracle import algorithm_1, batch, networks, passes
from peerseg.data.labels import IGNORE
from peerseg.errors import PeersegError
from peerseg.experiment.reading import protocol_overrides
from peerseg.methods import NCPS, Clock, Supervised
from peerseg.placement.single import Together

CLOCK = Clock(seed=3, step=5, steps=10)


def _gradients(parts: list[torch.nn.Module]) -> torch.Tensor:
    grads = [p.grad.flatten() for part in parts for p in part.parameters() if p.grad is not None]
    return torch.cat(grads)


def _statistics(parts: list[torch.nn.Module]) -> torch.Tensor:
    return torch.cat([b.flatten().double() for part in parts for name, b in part.named_buffers() if "running" in name])


def _learn(method: NCPS | Supervised, clock: Clock = CLOCK) -> list[str]:
    names = []
    for loss in method.losses(batch(), Together(method.count), clock):
        loss.value.backward()
        names.append(loss.name)
    return names


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize("reduction", ["concatenation", "sum"])
@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("counted", ["inside", "all"])
def test_gradients_and_statistics_are_those_of_algorithm_1(
    count: int, reduction: str, lean: bool, counted: str
) -> None:
    given, reference = batch(), networks(count)
    assert given.unlabeled is not None
    known, open_ = given.inside & (given.masks != IGNORE), given.unlabeled.inside
    pixels = (known, open_) if counted == "inside" else (torch.ones_like(known), torch.ones_like(open_))
    algorithm_1(passes(reference, CLOCK), given, pixels, count=count, weight=1.5, mean=reduction).backward()

    method = NCPS(networks(count), ramp=0, reduction=reduction, labels="train", counted=counted, lean=lean)
    _learn(method)

    wanted = _gradients(list(reference))
    assert (_gradients(list(method.networks)) - wanted).abs().max() <= 1e-12 * wanted.abs().max()
    assert torch.equal(_statistics(list(method.networks)), _statistics(list(reference)))


@pytest.mark.parametrize("count", [2, 3, 5])
@pytest.mark.parametrize("protocol", ["paper", "code"])
def test_both_protocols_are_algorithm_1_for_any_n(protocol: str, count: int) -> None:
    given, reference = batch(labeled=3, unlabeled=2, side=8), networks(count)
    published = {name.removeprefix("method."): value for name, value in protocol_overrides(protocol, "ncps").items()}
    everywhere = [torch.ones(3, 8, 8, dtype=torch.bool), torch.ones(2, 8, 8, dtype=torch.bool)]
    mean = published["reduction"]
    algorithm_1(passes(reference, CLOCK), given, everywhere, count=count, weight=1.5, mean=mean).backward()

    method = NCPS(networks(count), **published)
    for loss in method.losses(given, Together(count), CLOCK):
        loss.value.backward()

    wanted = _gradients(list(reference))
    assert (_gradients(list(method.networks)) - wanted).abs().max() <= 1e-12 * wanted.abs().max()
    assert torch.equal(_statistics(list(method.networks)), _statistics(list(reference)))


def test_two_networks_are_cps() -> None:
    given, pair = batch(), networks(2, dropout=0)
    assert given.unlabeled is not None
    logits = [(net(given.images), net(given.unlabeled.images)) for net in pair]
    joined = [torch.cat(both) for both in logits]
    everywhere = torch.nn.functional.cross_entropy
    known = [everywhere(one, given.masks.long().where(given.masks < 254, -100), reduction="none") for one, _ in logits]
    supervised = sum((loss.sum((1, 2)) / (given.masks < 254).sum((1, 2))).mean() for loss in known)
    cps = everywhere(joined[0], joined[1].argmax(1)) + everywhere(joined[1], joined[0].argmax(1))
    (supervised + 1.5 * cps).backward()

    method = NCPS(networks(2, dropout=0), ramp=0, labels="train", counted="all")
    _learn(method)
    wanted = _gradients(list(pair))
    assert (_gradients(list(method.networks)) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_labels_in_eval_mode_come_from_running_statistics() -> None:
    reference, given = networks(2), batch()
    assert given.unlabeled is not None
    answers = []
    for net in reference:
        net.eval()
        with torch.no_grad():
            answers.append((net(given.images).argmax(1), net(given.unlabeled.images).argmax(1)))
        net.train()
    method = NCPS(networks(2), ramp=0, labels="eval", counted="all", reduction="sum", lean=False)
    losses = {loss.name: loss.value.detach() for loss in method.losses(given, Together(2), CLOCK)}
    run = passes(networks(2), CLOCK)
    logits = run(0, given.images, "labeled"), run(0, given.unlabeled.images, "unlabeled")
    cross = torch.nn.functional.cross_entropy(logits[1], answers[1][1])
    assert losses["unlabeled1"] == pytest.approx(1.5 * cross.item(), rel=1e-12)


def test_weight_0_learns_the_labels_alone_but_batchnorm_sees_the_unlabeled_images() -> None:
    method, supervised = NCPS(networks(2), weight=0.0, labels="train"), Supervised(networks(2))
    _learn(method)
    _learn(supervised)
    assert torch.equal(_gradients(list(method.networks)), _gradients(list(supervised.networks)))
    assert not torch.equal(_statistics(list(method.networks)), _statistics(list(supervised.networks)))


def test_weight_grows_over_the_ramp() -> None:
    def cross(step: int) -> float:
        method = NCPS(networks(2, dropout=0), ramp=0.4)
        losses = method.losses(batch(), Together(2), Clock(seed=3, step=step, steps=10))
        return next(float(loss.value.detach()) for loss in losses if loss.name == "unlabeled1")

    assert cross(0) == pytest.approx(cross(9) / 4)
    assert cross(3) == pytest.approx(cross(9))


def test_every_graph_is_given_by_itself_and_each_network_is_completed_once() -> None:
    method = NCPS(networks(3))
    losses = list(method.losses(batch(), Together(3), CLOCK))
    assert [loss.name for loss in losses] == [f"{side}{k}" for side in ("labeled", "unlabeled") for k in (1, 2, 3)]
    assert [name for loss in losses for name in loss.completes] == ["network 1", "network 2", "network 3"]


def test_a_lonely_network_is_refused() -> None:
    with pytest.raises(PeersegError, match="n-CPS was given 1 network, expected at least 2"):
        NCPS(networks(1))


@pytest.mark.parametrize(("setting", "value"), [("reduction", "mean"), ("labels", "test"), ("counted", "outside")])
def test_unknown_words_are_refused(setting: str, value: str) -> None:
    with pytest.raises(PeersegError, match=f"method.{setting} is '{value}', expected one of"):
        NCPS(networks(2), **{setting: value})
