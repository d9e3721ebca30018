"""ReCo: the contrast against a naive transcription, and the whole loss in double precision."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from oracle import batch, cross_entropy, gradients, learned, networks
from peerseg.errors import PeersegError
from peerseg.experiment.build import seeded
from peerseg.methods import Clock, ReCo
from peerseg.methods.contrast import Draw, Pixels, join, regional_contrast
from peerseg.methods.views import mixed_view

CLOCK = Clock(seed=3, step=5, steps=10)


def made(count: int = 1, **options: object) -> ReCo:
    with seeded(0, "method"):
        return ReCo(networks(count, dropout=0), **options)


def few(*labels: int, each: int = 1) -> Pixels:
    """Pixels with two numbers each; all of one class are alike, so that what is drawn does not matter."""
    places = {0: (3.0, 0.0), 1: (0.0, 2.0), 2: (-1.0, 1.0)}
    rows = torch.tensor([places[name] for name in labels for _ in range(each)], dtype=torch.float64)
    known = torch.tensor(labels, dtype=torch.uint8).repeat_interleave(each)
    return Pixels(rows.requires_grad_(), known, torch.full((len(known),), 0.5, dtype=torch.float64))


def test_contrast_of_two_classes_is_the_cross_entropy_of_cosines() -> None:
    draw = Draw(queries=3, negatives=5)
    found = regional_contrast(few(0, 2, each=4), draw, torch.Generator())
    cosine = -1 / 2**0.5
    wanted = -torch.log_softmax(torch.tensor([1.0] + [cosine] * 5).double() / 0.5, 0)[0]
    assert found.item() == pytest.approx(float(wanted))


def test_near_classes_are_drawn_more_often() -> None:
    counts = torch.zeros(2)
    for seed in range(40):
        pixels = few(0, 1, 2, each=2)
        sure = Pixels(pixels.represented, pixels.labels, torch.tensor([0.5, 0.5, 1, 1, 1, 1]).double())
        found = regional_contrast(sure, Draw(1, 1), torch.Generator().manual_seed(seed))
        near, far = (-torch.log_softmax(torch.tensor([1.0, c]).double() / 0.5, 0)[0] for c in (0.0, -1 / 2**0.5))
        counts[int(abs(found - near) > abs(found - far))] += 1
    odds = torch.tensor([0.0, -1 / 2**0.5]).div(0.5).softmax(0)
    assert abs(counts[0] / 40 - odds[0]) < 0.15


def test_gradient_goes_through_the_queries_alone() -> None:
    pixels = few(0, 1, each=2)
    sure = Pixels(pixels.represented, pixels.labels, torch.tensor([0.5, 0.5, 1.0, 1.0]).double())
    regional_contrast(sure, Draw(8, 4), torch.Generator()).backward()
    assert pixels.represented.grad is not None
    assert pixels.represented.grad[:2].abs().max() > 0
    assert not pixels.represented.grad[2:].any(), "of class 1 the network is sure"


def test_nothing_to_contrast_adds_nothing() -> None:
    alone = few(1, each=3)
    assert regional_contrast(alone, Draw(), torch.Generator()).item() == 0
    two = few(0, 1)
    sure = Pixels(two.represented, two.labels, torch.ones(2).double())
    assert regional_contrast(sure, Draw(), torch.Generator()).item() == 0
    nobody = Pixels(two.represented[:0], two.labels[:0], two.represented[:0, 0])
    regional_contrast(nobody, Draw(), torch.Generator()).backward()


def test_a_step_without_any_known_pixel_has_a_loss() -> None:
    given = replace(batch(), masks=torch.full((2, 16, 16), 255, dtype=torch.uint8))
    assert learned(made(valid=1.0), given, CLOCK)["network1"] >= 0


def test_pixels_of_two_views_are_joined() -> None:
    both = join(few(0, 1), few(2))
    assert both.labels.tolist() == [0, 1, 2]
    assert both.represented.shape == (3, 2)


@pytest.mark.parametrize("mixing", ["class", "box"])
def test_gradients_are_those_of_the_equation(mixing: str) -> None:
    options = {"weight": 2.0, "contrast": 0.0, "confidence": 0.4, "mixing": mixing, "partner": "own"}
    given, reference, method = batch(partner=True), made(**options), made(**options)
    first, second = given.unlabeled, given.partner
    assert first is not None
    assert second is not None
    teacher = networks(2)[1].eval()
    for one in (reference, method):
        one.teachers.networks[0].load_state_dict(teacher.state_dict())
    with torch.no_grad():
        ones, others = (teacher(view.images).softmax(1) for view in (first, second))
    m = given.boxes[0] if mixing == "box" else method._labels(0, given, CLOCK)[2]
    if mixing == "class":
        for image, answer in zip(m, others.argmax(1), strict=True):
            assert len(answer[image].unique()) == len(answer.unique()) // 2
            assert not torch.isin(answer[~image], answer[image].unique()).any()
    soft = torch.where(m[:, None], others, ones)
    counted = torch.where(m, second.inside, first.inside)
    network = reference.network(0)
    logits = network(torch.where(m[:, None], second.strong[0], first.strong[0]))
    parts = []
    for b in range(4):
        sure = float(((soft[b].amax(0) >= 0.4) & counted[b]).sum() / counted[b].sum())
        parts.append(sure * cross_entropy(logits[b : b + 1], soft[b : b + 1].argmax(1), counted[b : b + 1]))
    (cross_entropy(network(given.images), given.masks, given.masks < 254) + 2 * torch.stack(parts).mean()).backward()

    learned(method, given, CLOCK)
    wanted = gradients(network)
    assert (gradients(method.network(0)) - wanted).abs().max() <= 1e-12 * wanted.abs().max()
    assert not gradients(method.heads).any()


def test_the_contrast_reaches_the_head_and_the_network_from_both_views(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[Pixels] = []

    def noted(pixels: Pixels, draw: Draw, random: torch.Generator) -> Tensor:
        shown.append(pixels)
        return regional_contrast(pixels, draw, random)

    monkeypatch.setattr("peerseg.methods.reco.regional_contrast", noted)
    given, method = batch(), made(valid=0.0)
    learned(method, given, CLOCK)
    with torch.no_grad():
        labels = method._labels(0, given, CLOCK)[0]
    assert given.unlabeled is not None
    inside = mixed_view(replace(given, boxes=(method._labels(0, given, CLOCK)[2],)), strong=True).inside
    # The feature has half of the resolution; the pixel behind the middle of a place is the nearest.
    known = given.masks[:, 1::2, 1::2]
    wanted = [known[known < 254], labels[:, 1::2, 1::2][inside[:, 1::2, 1::2]]]
    (pixels,) = shown
    assert torch.equal(pixels.labels, torch.cat(wanted))
    assert gradients(method.heads).abs().max() > 0
    assert [group.name for group in method.parameter_groups()] == ["network 1", "heads"]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mixing": "x"}, "method.mixing is 'x'"),
        ({"answers": "x"}, "method.answers is 'x'"),
        ({"counted": "x"}, "method.counted is 'x'"),
        ({"partner": "x"}, "method.partner is 'x'"),
        ({"contrast": -1}, "method.contrast is -1"),
        ({"confidence": 2}, "method.confidence is 2"),
        ({"valid": 2}, "method.valid is 2"),
        ({"queries": 0}, "method.queries is 0"),
        ({"negatives": 0}, "method.negatives is 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(PeersegError, match=named):
        made(**options)
