"""CCT against its equation, transcribed naively in double precision; its disturbances; and where gradients go."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from oracle import batch, cross_entropy, gradients, learned, networks, squared_distance
from peerseg.errors import PeersegError
from peerseg.experiment.build import seeded
from peerseg.methods import CCT, Clock
from peerseg.methods.perturbations import (
    KINDS,
    Seen,
    add_noise,
    cut_out,
    drop_attended,
    drop_channels,
    go_astray,
    hide_context,
    hide_objects,
)
from peerseg.networks.choosing import choose
from peerseg.networks.resizing import resize

CLOCK = Clock(seed=3, step=5, steps=10)


def made(**options: object) -> CCT:
    with seeded(0, "method"):
        return CCT(networks(1, dropout=0), ramp=0, **options)


@pytest.mark.parametrize("options", [{"each": 2}, {"each": 1, "adversarial": 2}, {"each": 2, "background": 0}])
def test_gradients_are_those_of_all_graphs_alive_until_one_backward(options: dict[str, int]) -> None:
    given, reference, method = batch(), made(**options), made(**options)
    assert given.unlabeled is not None
    network, heads, size = reference.network(0), reference.auxiliary[0], (16, 16)
    total = cross_entropy(network(given.images), given.masks, given.masks < 254)
    feature = network.decode(network.encode(given.unlabeled.images))
    soft = network.classify(feature, size).softmax(1).detach()
    seen = Seen(feature, choose(resize(soft, tuple(feature.shape[2:]))), soft, options.get("background"))
    for k, disturb in enumerate(reference.disturbances):

        def classify(disturbed: Tensor, k: int = k) -> Tensor:
            return resize(heads[k](disturbed), size)

        logits = classify(disturb(seen, classify, CLOCK.generator(0, "disturbance", k)))
        total = total + 30 / len(heads) * squared_distance(logits, soft, given.unlabeled.inside)
    total.backward()

    learned(method, given, CLOCK)
    wanted = gradients(reference)
    assert len(heads) == len(KINDS) * options["each"] + options.get("adversarial", 0)
    assert (gradients(method) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


def test_the_main_classifier_learns_nothing_from_consistency_and_the_encoder_does() -> None:
    given = batch()
    method = made()
    learned(method, replace(given, masks=torch.full_like(given.masks, 255)), CLOCK)
    network = method.network(0)
    assert not gradients(network.classifier).any()
    assert gradients(network.stem).abs().max() > 0
    assert gradients(method.auxiliary).abs().max() > 0


def test_the_auxiliary_classifiers_have_a_group_of_their_own() -> None:
    assert [group.name for group in made().parameter_groups()] == ["network 1", "auxiliary"]


@pytest.fixture
def seen() -> Seen:
    """A feature of ones; class 2 in a box, class 1 in a corner, class 0 elsewhere."""
    labels = torch.zeros(2, 10, 12, dtype=torch.uint8)
    labels[:, 2:7, 1:11], labels[:, 9:, 9:] = 2, 1
    soft = torch.nn.functional.one_hot(labels.long(), 3).permute(0, 3, 1, 2).double()
    return Seen(torch.ones(2, 40, 10, 12, dtype=torch.float64), labels, soft, background=0)


def nothing(_: Tensor) -> Tensor:
    raise AssertionError("only the adversarial disturbance classifies")


@pytest.fixture
def random() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_half_of_the_channels_are_dropped(seen: Seen, random: torch.Generator) -> None:
    dropped = drop_channels(seen, nothing, random)
    assert set(dropped.unique().tolist()) == {0.0, 2.0}
    assert ((dropped == 0).flatten(2).all(2) | (dropped == 2).flatten(2).all(2)).all()
    assert 0.3 < (dropped == 0).double().mean() < 0.7
    assert not torch.equal(dropped[0], dropped[1])


def test_noise_is_the_same_for_every_image(seen: Seen, random: torch.Generator) -> None:
    noisy = add_noise(seen, nothing, random)
    assert torch.equal(noisy[0], noisy[1])
    assert (noisy - 1).abs().max() <= 0.3
    assert (noisy - 1).std() > 0.15


def test_attended_places_are_dropped(seen: Seen, random: torch.Generator) -> None:
    attention = torch.linspace(0, 1, 120, dtype=torch.float64).reshape(10, 12)
    dropped = drop_attended(Seen(attention.expand(2, 3, 10, 12), seen.labels, seen.target, 0), nothing, random)
    limit = float(attention[dropped[0, 0] == 0][1:].min())
    assert 0.7 <= limit <= 0.92
    assert torch.equal(dropped == 0, ((attention >= limit) | (attention == 0)).expand_as(dropped))


def test_context_and_objects_are_each_other_s_rest(seen: Seen, random: torch.Generator) -> None:
    objects, context = hide_context(seen, nothing, random), hide_objects(seen, nothing, random)
    assert torch.equal(objects + context, seen.feature)
    assert torch.equal(objects[:, 0] == 1, seen.labels != 0)


def test_windows_are_cut_out_of_the_box_of_each_object(seen: Seen, random: torch.Generator) -> None:
    cut = cut_out(seen, nothing, random)
    for image, labels in zip(cut[:, 0] == 0, seen.labels, strict=True):
        rows, columns = image[2:7, 1:11].any(1).sum(), image[2:7, 1:11].any(0).sum()
        assert (int(rows), int(columns)) == (2, 4), "0.4 of 5 and of 10"
        assert int(image.sum()) == 2 * 4 + 1, "and one pixel of the corner"
        assert not image[labels == 0].any()


@pytest.mark.parametrize("disturb", [hide_context, hide_objects, cut_out])
def test_without_a_background_half_of_the_classes_are_objects(
    seen: Seen, random: torch.Generator, disturb: Callable[..., Tensor]
) -> None:
    scene = Seen(seen.feature, seen.labels, seen.target, background=None)
    drawn = {tuple(scene.labels[0][scene.objects(random)[0]].unique().tolist()) for _ in range(60)}
    assert drawn == {(0,), (1,), (2,)}
    disturbed = disturb(scene, nothing, random)
    assert 0 < (disturbed == 0).double().mean() < 1


def test_an_adversarial_disturbance_changes_the_answer_more_than_a_drawn_one(
    seen: Seen, random: torch.Generator
) -> None:
    classify = torch.nn.Conv2d(40, 3, 1).double()
    scene = Seen(torch.randn(2, 40, 10, 12, generator=random, dtype=torch.float64), seen.labels, seen.target, None)
    scene = Seen(scene.feature, scene.labels, classify(scene.feature).softmax(1).detach(), None)
    astray = go_astray(scene, classify, random)
    step = (astray - scene.feature).flatten(1)
    assert torch.allclose(step.norm(dim=1), torch.full((2,), 2.0, dtype=torch.float64))
    drawn = torch.randn(step.shape, generator=random, dtype=torch.float64)
    other = scene.feature + (2 * drawn / drawn.norm(dim=1, keepdim=True)).reshape(scene.feature.shape)
    far, near = ((classify(x).softmax(1) - scene.target).square().sum() for x in (astray, other))
    assert far > 3 * near
    assert all(parameter.grad is None for parameter in classify.parameters())


def test_annealing_leaves_out_what_is_sure_and_lets_it_in() -> None:
    masks = torch.zeros(1, 1, 3, dtype=torch.uint8)
    masks[0, 0, 2] = 255
    logits = torch.tensor([[[[2.0, -1.0, 0.0]], [[0.0, 0.0, 0.0]], [[0.0, 0.0, 0.0]]]]).double()  # p: 0.79, 0.16
    method = made(anneal=0.5)
    found = [method._unsure(logits, masks, Clock(0, step, 100)).flatten().tolist() for step in (0, 99)]
    assert found == [[False, True, False], [True, True, False]]
    assert learned(method, batch(), CLOCK)["supervised1"] > 0


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"each": -1}, "method.each is -1"),
        ({"adversarial": -1}, "method.adversarial is -1"),
        ({"each": 0}, r"method.each \+ method.adversarial is 0"),
        ({"background": 3}, "method.background is 3"),
        ({"anneal": 2.0}, "method.anneal is 2.0"),
        ({"counted": "x"}, "method.counted is 'x'"),
        ({"anneal": 0.4, "hardest": 9}, "method.anneal is 0.4 and method.hardest is 9"),
    ],
)
def test_settings_that_mean_nothing_are_refused(options: dict[str, object], named: str) -> None:
    with pytest.raises(PeersegError, match=named):
        made(**options)


def test_small_steps_are_not_lost_in_few_bits(seen: Seen, random: torch.Generator) -> None:
    classify = torch.nn.Conv2d(40, 3, 1)
    feature = torch.randn(2, 40, 10, 12, generator=random).to(torch.bfloat16)
    scene = Seen(feature, seen.labels, seen.target.float(), None)
    with torch.autocast("cpu", torch.bfloat16):
        moved = (go_astray(scene, classify, random) - feature.float()).flatten(1)
    assert torch.allclose(moved.norm(dim=1), torch.full((2,), 2.0), rtol=1e-3)
    assert (moved != 0).float().mean() > 0.99
