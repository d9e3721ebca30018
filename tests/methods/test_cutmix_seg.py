"""CutMix-Seg against its equation, transcribed naively in double precision."""

import pytest
import torch

from oracle import batch, cross_entropy, gradients, learned, networks, squared_distance
from peerseg.errors import PeersegError
from peerseg.methods import Clock, CutMixSeg

CLOCK = Clock(seed=3, step=5, steps=10)


@pytest.mark.parametrize("strong", [False, True])
@pytest.mark.parametrize("counted", ["inside", "all"])
def test_gradients_are_those_of_the_equation(strong: bool, counted: str) -> None:
    given, (student, teacher) = batch(partner=True), networks(2, dropout=0)
    first, second, m = given.unlabeled, given.partner, given.boxes[0][:, None].double()
    assert first is not None
    assert second is not None
    with torch.no_grad():
        soft = ((1 - m) * teacher.eval()(first.images) + m * teacher(second.images)).softmax(1)
    shown = (first.strong[0], second.strong[0]) if strong else (first.images, second.images)
    inside = torch.where(given.boxes[0], second.inside, first.inside)
    counts = inside if counted == "inside" else torch.ones_like(inside)
    logits = student((1 - m) * shown[0] + m * shown[1])
    parts = []
    for b in range(4):
        sure = float(((soft[b].amax(0) >= 0.4) & counts[b]).sum() / counts[b].sum())
        parts.append(3 * sure * squared_distance(logits[b : b + 1], soft[b : b + 1], counts[b : b + 1]))
    total = 1.5 * torch.stack(parts).mean() + cross_entropy(student(given.images), given.masks, given.masks < 254)
    total.backward()

    options = {"weight": 1.5, "confidence": 0.4, "partner": "own", "strong": strong, "counted": counted}
    method = CutMixSeg(networks(1, dropout=0), **options)
    method.teachers.networks[0].load_state_dict(networks(2)[1].state_dict())
    learned(method, given, CLOCK)
    wanted = gradients(student)
    assert (gradients(method.networks) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_an_image_of_which_the_teacher_is_never_sure_does_not_count() -> None:
    assert learned(CutMixSeg(networks(1), confidence=1.0), batch(), CLOCK)["consistency1"] == 0


def test_what_it_wants_follows_from_its_settings() -> None:
    assert CutMixSeg(networks(1), strong=False, partner="own").wants.strong == 0
    assert CutMixSeg(networks(1)).wants.partner == "neighbor"


def test_an_unknown_partner_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"method\.partner is 'none', expected one of own, same-image, neighbor"):
        CutMixSeg(networks(1), partner="none")
