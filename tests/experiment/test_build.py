"""From settings to parts: networks from their own seeds, colors, votes, and what cannot work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from conftest import TINY, write_labels
from peerseg.data import Shapes, Split
from peerseg.errors import PeersegError
from peerseg.experiment.build import build, build_dataset, build_method, default_vote, protocol_of, seeded
from peerseg.experiment.plans import EvaluationPlan
from peerseg.experiment.settings import Settings, settings_of
from peerseg.experiment.tables import NETWORKS, imported
from peerseg.inference import Protocol
from peerseg.networks.small import SmallNetwork

Tiny = Callable[..., Settings]


def folder_settings(root: Path, overrides: dict[str, Any] | None = None) -> Settings:
    """The folder recipe with a tiny network."""
    tiny = {"data.root": str(root), "network.name": "small", "network.width": 4, "loader.crop": 16, "loader.workers": 0}
    return settings_of("folder", tiny | (overrides or {}))[0]


def weights(settings: Settings, network: int) -> dict[str, torch.Tensor]:
    return build_method(settings, 6, 3).network(network).state_dict()


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_task_has_what_the_settings_say(tiny: Tiny) -> None:
    built = build(tiny({"loader.workers": 1, "evaluation.window": 8, "evaluation.flip": True, "seed": 3}))
    task = built.task

    assert (task.steps, task.seed, task.every, task.workers) == (4, 3, 2, 1)
    assert (task.method.count, task.best) == (3, "sv")
    assert task.protocol == Protocol(window=8, flip=True)
    assert list(task.val) == list(built.split.val) == ["scene-00008", "scene-00009"]
    assert [len(part) for part in (built.split.labeled, built.split.unlabeled)] == [3, 5]
    assert task.facts["channels"] == 3
    assert task.facts["classes"] == list(Shapes(2).label_space.names)
    assert task.facts["colors"][1] == [214, 69, 65]


def test_progress_is_shown_of_what_is_slow(tiny: Tiny) -> None:
    watched: dict[str, list[str]] = {}

    def watch(ids: Any, what: str) -> list[str]:
        watched[what] = list(ids)
        return watched[what]

    build(tiny({"loader.normalization": "data"}), watch)

    assert {what: len(ids) for what, ids in watched.items()} == {
        **{"reading labeled masks": 3, "reading val masks": 2, "reading colors": 3}
    }


def test_a_network_follows_from_the_seed_and_its_number_alone(tiny: Tiny) -> None:
    settings = tiny()
    wider = tiny({"networks": [{"width": 8}, {}, {}]})

    assert same(weights(settings, 1), weights(settings, 1))
    assert same(weights(settings, 1), weights(wider, 1))
    assert same(weights(settings, 0), weights(tiny({"method.name": "supervised", "method.count": 1}), 0))
    assert not same(weights(settings, 0), weights(settings, 1))
    assert not same(weights(settings, 1), weights(tiny({"seed": 1}), 1))


def test_networks_may_differ(tiny: Tiny) -> None:
    method = build_method(tiny({"networks": [{}, {"width": 8}, {"dropout": 0.5}]}), 6, 3)
    shapes = [tuple(network.state_dict()["classifier.weight"].shape[:2]) for network in method.networks]

    assert shapes == [(6, 4), (6, 8), (6, 4)]


def test_building_leaves_chance_alone(tiny: Tiny) -> None:
    torch.manual_seed(5)
    wanted = torch.rand(3)
    torch.manual_seed(5)
    build(tiny())
    with seeded(1, "x"):
        inside = torch.rand(3)

    assert torch.equal(torch.rand(3), wanted)
    assert not torch.equal(inside, wanted)


def test_colors_of_the_data_reach_every_network_and_the_views(tiny: Tiny) -> None:
    settings = tiny({"loader.normalization": "data"})
    method = build(settings).task.method
    dataset = build_dataset(settings)
    pixels = np.concatenate([dataset.image(id).reshape(-1, 3) for id in dataset.split().labeled]) / 255.0

    for network in method.networks:
        np.testing.assert_allclose(network.mean.numpy(), pixels.mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(network.std.numpy(), pixels.std(axis=0), atol=1e-5)


def test_colors_of_the_data_need_a_network_that_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Fixed(SmallNetwork):
        def __init__(self, classes: int, *, channels: int = 3) -> None:
            super().__init__(classes, channels=channels, width=4)

    monkeypatch.setitem(NETWORKS, "fixed", "a:b")
    monkeypatch.setattr("peerseg.experiment.tables.imported", lambda path: Fixed if path == "a:b" else imported(path))
    recipe = {name: value for name, value in TINY.items() if not name.startswith("network.")}
    settings = settings_of("demo", recipe | {"network.name": "fixed", "loader.normalization": "data"})[0]
    with pytest.raises(
        PeersegError, match=r"'data', but the network 'fixed' takes no mean and std: set loader.normaliz"
    ):
        build(settings)


def test_all_networks_normalize_as_the_first_does(tiny: Tiny) -> None:
    settings = tiny({"networks": [{"mean": [0.1, 0.2, 0.3], "std": [0.2, 0.2, 0.2]}, {}, {}]})
    method = build_method(settings, 6, 3)

    assert [network.mean.tolist() for network in method.networks] == [pytest.approx([0.1, 0.2, 0.3])] * 3


def test_networks_that_would_need_other_colors_are_refused(tiny: Tiny) -> None:
    settings = tiny({"networks": [{}, {"mean": [0.1, 0.2, 0.3], "std": [0.2, 0.2, 0.2]}, {}]})
    with pytest.raises(
        PeersegError, match=r"network 2 normalizes colors otherwise than network 1.*the same mean and std"
    ):
        build_method(settings, 6, 3)


def test_strong_views_are_drawn_as_the_loader_says(tiny: Tiny) -> None:
    plain = dict.fromkeys(("chance", "gray", "blur"), 0)
    still = build(tiny({"loader.jitter": plain})).task.stream.batch(0).unlabeled
    strong = build(tiny()).task.stream.batch(0).unlabeled

    assert still is not None
    assert strong is not None
    torch.testing.assert_close(still.strong[0], still.images)
    assert not torch.allclose(strong.strong[0], strong.images)


def test_a_checkpoint_needs_no_pretrained_weights(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def made(section: str, settings: dict[str, Any], **supplied: Any) -> torch.nn.Module:
        asked.append(settings["weights"])
        return real("network", {"name": "small", "width": 4}, **supplied)

    from peerseg.experiment import build as module

    real = module._made
    own = {"name": "library", "architecture": "Unet", "encoder": "resnet18", "weights": "imagenet"}
    settings = tiny({"networks": [own] * 3})
    monkeypatch.setattr(module, "_made", made)
    build_method(settings, 6, 3, pretrained=False)
    build_method(settings, 6, 3)

    assert asked == [None] * 3 + ["imagenet"] * 3


@pytest.mark.parametrize(("crop", "nearer"), [(20, "[16, 16]"), ([16, 30], "[16, 32]"), (3, "[8, 8]")])
def test_a_crop_that_the_network_cannot_halve_is_refused(tiny: Tiny, crop: Any, nearer: str) -> None:
    with pytest.raises(PeersegError) as caught:
        build(tiny({"loader.crop": crop}))
    assert f"expected multiples of 8 for this network, such as {nearer}" in str(caught.value)


def test_the_vote_that_chooses(tiny: Tiny) -> None:
    three = build_method(tiny(), 6, 3)
    alone = build_method(tiny({"method.name": "supervised", "method.count": 1}), 6, 3)

    assert default_vote(EvaluationPlan(), three) == "sv"
    assert default_vote(EvaluationPlan(best="net2"), three) == "net2"
    assert default_vote(EvaluationPlan(), alone) == "single"
    with pytest.raises(PeersegError, match=r"evaluation.best is 'net4'; did you mean 'net2|3'"):
        default_vote(EvaluationPlan(best="net4"), three)
    with pytest.raises(PeersegError, match=r"evaluation.best is 'sv'; known: single"):
        default_vote(EvaluationPlan(best="sv"), alone)


def test_a_wrong_vote_is_refused_before_training(tiny: Tiny) -> None:
    with pytest.raises(PeersegError, match=r"evaluation.best is 'hvv'; did you mean 'hv'"):
        build(tiny({"evaluation.best": "hvv"}))


def test_the_plan_is_the_protocol() -> None:
    plan = EvaluationPlan(window=64, overlap=0.5, flip=True, scales=(0.5, 1.0))
    assert protocol_of(plan) == Protocol(64, 0.5, True, (0.5, 1.0))


def test_one_network_has_no_peers(tiny: Tiny) -> None:
    for name in ("ncps", "ncps-cutmix"):
        with pytest.raises(PeersegError, match=r"n-CPS was given 1 network, expected at least 2: set method.count"):
            build(tiny({"method.name": name, "method.count": 1}))


def test_without_unlabeled_images_only_supervised_is_trained(folder: Path) -> None:
    for k in range(5, 8):
        write_labels(folder / "masks" / f"img{k}.png", seed=k)

    with pytest.raises(PeersegError, match=r"there is no unlabeled image to learn from: .* --method.name supervised"):
        build(folder_settings(folder))
    assert build(folder_settings(folder, {"method.name": "supervised"})).split.unlabeled == ()


def test_an_image_with_two_parts_is_refused(tiny: Tiny, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shapes, "split", lambda self: Split(self.ids[:3], self.ids[2:8], self.ids[8:]))
    with pytest.raises(PeersegError, match="'scene-00002' is in the labeled and in the unlabeled list"):
        build(tiny())


def test_notes_of_the_data_are_handed_on(folder: Path) -> None:
    notes = " ".join(build(folder_settings(folder)).notes)

    assert "no classes.yaml: found 2 classes" in notes
    assert "no val.txt: drew 1 of the 5 labeled images" in notes


@pytest.mark.parametrize(
    ("mean", "std", "words"),
    [
        (
            None,
            [0.1, 0.1, 0.1],
            "network.mean is None and network.std is .*, which belong together: give both or neither",
        ),
        ([0.5, 0.5], [0.1, 0.1], "expected 3 numbers each, one a channel"),
        ([0.5, 0.5, 0.5], [0.1, 0.0, 0.1], "those of std above 0"),
    ],
)
def test_colors_that_fit_nothing_are_refused(
    tiny: Callable[..., Settings], mean: list[float] | None, std: list[float], words: str
) -> None:
    with pytest.raises(PeersegError, match=words):
        build(tiny({"network.mean": mean, "network.std": std}))
