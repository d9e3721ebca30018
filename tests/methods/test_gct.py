"""GCT against its equations, transcribed naively in double precision, and the routes of its gradients."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from oracle import batch, cross_entropy, gradients, networks, squared_distance
from peerseg.errors import PeersegError
from peerseg.experiment.build import seeded
from peerseg.methods import GCT, Clock, Loss
from peerseg.methods.flaws import FlawDetector, blurred, settled, spread, true_flaws
from peerseg.placement.single import Together
from peerseg.training.loop import back_propagate

CLOCK = Clock(seed=3, step=5, steps=10)
GIVEN = batch(side=32)


def made(**options: float) -> GCT:
    with seeded(0, "method"):
        method = GCT(networks(2, dropout=0), **options)
    with torch.no_grad():  # a fresh detector sees next to no flaws
        method.detector.layers[-1][1].weight.mul_(40)
        method.detector.layers[-1][1].bias.fill_(0.5)
    return method


def losses(method: GCT, share: float = 1.0, only: str = "") -> list[Loss]:
    kept = []
    for loss in method.losses(GIVEN, Together(2), CLOCK):
        if loss.name.startswith(only):
            back_propagate(loss, share)
            kept.append(loss)
    return kept


def mean(values: Tensor, counted: Tensor) -> Tensor:
    return torch.stack([v[c].sum() / max(int(c.sum()), 1) for v, c in zip(values, counted, strict=True)]).mean()


def test_gradients_are_those_of_the_equations() -> None:
    options = {"weight": 7.0, "ramp": 1.0, "correction": 2.0, "detection": 3.0, "limit": 0.3}
    reference, method = made(**options), made(**options)
    detector, total, bad = reference.detector, torch.zeros((), dtype=torch.float64), 0
    assert GIVEN.unlabeled is not None
    sides = [(GIVEN.images, GIVEN.inside & (GIVEN.masks != 255), 2 / 6)]
    sides += [(GIVEN.unlabeled.images, GIVEN.unlabeled.inside, 4 / 6)]
    for labeled, (images, counted, share) in zip((True, False), sides, strict=True):
        logits = [network(images) for network in reference.networks]
        p = [z.softmax(1) for z in logits]
        flaws = []
        for own in p:
            d = settled(detector(images, own.detach()))
            flaws.append(torch.where(d > 0.3, 1.0, d))
        for j in (0, 1):
            target = torch.where((flaws[1 - j] >= flaws[j])[:, None], p[j], p[1 - j]).detach()
            both = (flaws[0] > 0.3) & (flaws[1] > 0.3)
            bad += int(both.sum())
            held = [parameter.detach() for parameter in detector.parameters()]
            names = [name for name, _ in detector.named_parameters()]
            seen = torch.func.functional_call(detector, dict(zip(names, held, strict=True)), (images, p[j]))
            ramp = math.exp(-5 * (1 - 6 / 10) ** 2)
            term = 7 * ramp * squared_distance(logits[j], target, counted) + 2 * mean(both * seen**2, counted)
            total = total + share * term
            if labeled:
                known = GIVEN.masks < 254
                total = total + cross_entropy(logits[j], GIVEN.masks, known)
                error = detector(images, p[j].detach()) - true_flaws(p[j].detach(), GIVEN.masks, known)
                total = total + 3 * mean(error**2, known) / 2
    total.backward()
    assert bad > 0, "both networks are wrong somewhere"

    losses(method)
    wanted = gradients(reference)
    assert (gradients(method) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


@pytest.mark.parametrize("share", [1.0, 1024.0])
def test_no_gradient_takes_a_way_it_should_not(share: float) -> None:
    task, flaw = made(limit=0.0), made(limit=0.0)
    losses(task, share, "labeled")
    losses(task, share, "unlabeled")
    losses(flaw, share, "detector")
    assert not gradients(task.detector).any()
    assert gradients(task.networks).abs().max() > 0
    assert not gradients(flaw.networks).any()
    assert gradients(flaw.detector).abs().max() > 0
    assert all(parameter.requires_grad for parameter in task.detector.parameters())


def test_the_detector_corrects_networks_that_are_both_wrong() -> None:
    with_, without = made(limit=0.0, weight=0.0), made(limit=0.0, weight=0.0, correction=0.0)
    for method in (with_, without):
        losses(method, only="unlabeled")
    assert gradients(with_.networks).abs().max() > 0
    assert not gradients(without.networks).any()


def test_the_detector_has_eight_convolutions_and_an_optimizer_of_its_own() -> None:
    method = made(rate=0.003)
    convolutions = [m for m in method.detector.modules() if isinstance(m, nn.Conv2d)]
    assert [m.kernel_size for m in convolutions] == [(4, 4)] * 8
    group = method.parameter_groups()[-1]
    assert (group.name, group.kind, group.rate) == ("detector", "adamw", 0.003)
    assert len(group.parameters) == len(list(method.detector.parameters()))


@pytest.mark.parametrize("size", [(32, 32), (33, 47), (64, 40)])
def test_a_flaw_map_has_the_size_of_its_image(size: tuple[int, int]) -> None:
    flaws = FlawDetector(6)(torch.randn(2, 3, *size), torch.rand(2, 3, *size))
    assert flaws.shape == (2, *size)


def test_half_of_the_channels_are_normalized_image_by_image() -> None:
    detector = FlawDetector(3).double()
    x = torch.randn(4, 64, 5, 5, dtype=torch.float64)
    y = detector.layers[1](x * torch.tensor([1.0, 2.0, 3.0, 4.0])[:, None, None, None])
    assert torch.allclose(y[:, 32:].var(dim=(2, 3), correction=0), torch.ones(4, 32).double(), atol=1e-3)
    assert torch.allclose(y[:, :32].var(dim=(0, 2, 3), correction=0), torch.ones(32).double(), atol=1e-3)
    assert not torch.allclose(y[:, :32].var(dim=(2, 3), correction=0), torch.ones(4, 32).double(), atol=1e-1)


def test_true_flaws_are_where_the_answer_is_wrong() -> None:
    masks = torch.zeros(1, 32, 32, dtype=torch.uint8)
    masks[0, :, 28:] = 255
    answer = torch.zeros(1, 2, 32, 32, dtype=torch.float64)
    answer[:, 0] = 1.0
    answer[:, :, 4:10, 4:10] = torch.tensor([0.0, 1.0]).double()[None, :, None, None]
    flaws = true_flaws(answer, masks, masks < 254)
    assert flaws.amax() == 1
    assert flaws.amin() == 0
    assert flaws[0, 4:10, 4:10].min() > 0.5
    assert flaws[0, :, 20:].max() < 0.05


def test_a_right_answer_has_no_flaws() -> None:
    masks = torch.randint(0, 2, (1, 32, 32)).to(torch.uint8)
    answer = torch.nn.functional.one_hot(masks.long(), 2).permute(0, 3, 1, 2).double()
    assert not true_flaws(answer, masks, masks < 254).any()


def test_maps_are_blurred_by_a_gaussian_and_spread() -> None:
    point = torch.zeros(1, 9, 9, dtype=torch.float64)
    point[0, 4, 4] = 1
    weights = torch.tensor([math.exp(-0.5 * (k / 0.8) ** 2) for k in (-1, 0, 1)], dtype=torch.float64)
    weights = weights / weights.sum()
    assert torch.allclose(blurred(point, 2)[0, 3:6, 3:6], weights[:, None] * weights)
    assert torch.allclose(blurred(torch.ones(1, 9, 9), 5), torch.ones(1, 9, 9))
    assert spread(torch.tensor([[[1.0, 3.0], [2.0, 1.0]]])).tolist() == [[[0.0, 1.0], [0.5, 0.0]]]
    assert not spread(torch.ones(1, 2, 2)).any()


def test_faint_maps_are_none() -> None:
    maps = torch.stack(
        [torch.full((32, 32), 0.05), torch.full((32, 32), -1.0), torch.linspace(-1, 1, 1024).reshape(32, 32)]
    )
    flaws = settled(maps)
    assert not flaws[:2].any()
    assert (flaws[2].amin(), flaws[2].amax()) == (0, 1)


def test_a_pair_and_large_enough_views_are_asked_for() -> None:
    with pytest.raises(PeersegError, match=r"gct was given 3 networks, expected 2: set method\.count to 2"):
        GCT(networks(3))
    with pytest.raises(PeersegError, match=r"views of \(16, 16\) pixels are too small .* set loader\.crop"):
        next(made().losses(replace(batch(side=16)), Together(2), CLOCK))
    with pytest.raises(PeersegError, match=r"method\.limit is 2"):
        made(limit=2)
    with pytest.raises(PeersegError, match=r"method\.counted is 'x'"):
        GCT(networks(2), counted="x")


def test_flaws_are_told_apart_in_half_precision_too() -> None:
    maps = torch.rand(2, 64, 64, generator=torch.Generator().manual_seed(0))
    with torch.autocast("cpu", torch.bfloat16):
        flaws = settled(maps)
    assert flaws.dtype == torch.float32
    assert torch.equal(flaws, settled(maps))
