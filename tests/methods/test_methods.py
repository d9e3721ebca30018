"""What every method of the name table promises."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from oracle import batch, gradients, learned, networks
from peerseg.data.batch import cut
from peerseg.experiment.build import seeded
from peerseg.experiment.tables import METHODS, imported
from peerseg.methods import Clock, Loss, Method
from peerseg.placement.single import Together
from peerseg.training.loop import back_propagate

CLOCK = Clock(seed=3, step=5, steps=10)
ROWS = sorted(METHODS)
ANY = sorted(METHODS.keys() - {"gct"})  # any number of networks
GIVEN = batch(side=32)


def _method(name: str, count: int | None = None, *, dropout: float = 0.3, **options: Any) -> Method:
    made = networks(count or (3 if name in ANY else 2), dropout=dropout)
    with seeded(0, "method"):
        method: Method = imported(METHODS[name])(made, **options)
    return method


# CCT pushes a sum of gradients through its feature, so its losses must be back-propagated one by one.
@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"cct"}))
def test_yielding_equals_summing(name: str) -> None:
    split, joint = _method(name), _method(name)
    learned(split, GIVEN, CLOCK)
    torch.stack([loss.value for loss in joint.losses(GIVEN, Together(joint.count), CLOCK)]).sum().backward()
    wanted = gradients(joint)
    assert (gradients(split) - wanted).abs().max() <= 1e-12 * wanted.abs().max()


@pytest.mark.parametrize("name", ROWS)
def test_a_scaled_loss_has_scaled_gradients(name: str) -> None:
    plain, scaled = _method(name), _method(name)
    learned(plain, GIVEN, CLOCK)
    learned(scaled, GIVEN, CLOCK, share=1024.0)
    assert gradients(plain).abs().max() > 0
    assert torch.equal(gradients(scaled) / 1024, gradients(plain))


# ReCo contrasts pixels of different images, and CCT disturbs a batch at once.
@pytest.mark.parametrize("name", sorted(METHODS.keys() - {"reco", "cct"}))
def test_parts_of_a_batch_have_the_gradients_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nn.BatchNorm2d, "forward", lambda norm, x: x * norm.weight[:, None, None])
    given, found = batch(labeled=4, unlabeled=4, side=32), []
    for parts in (1, 2):
        method = _method(name, dropout=0, **({"drop": 0.0} if name == "unimatch" else {}))
        for piece in cut(given, parts):
            learned(method, piece, CLOCK, share=1 / parts)
        found.append(gradients(method))
    assert (found[1] - found[0]).abs().max() <= 1e-12 * found[0].abs().max()


@pytest.mark.parametrize("name", ROWS)
def test_chance_follows_from_the_step_and_leaves_the_default_generator_alone(name: str) -> None:
    def losses(clock: Clock) -> dict[str, float]:
        return learned(_method(name), GIVEN, clock)

    torch.manual_seed(0)
    before = torch.get_rng_state()
    first = losses(CLOCK)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(99)
    assert losses(CLOCK) == first
    assert losses(Clock(seed=3, step=6, steps=10)) != first


@pytest.mark.parametrize("name", ROWS)
def test_networks_stay_in_training_mode_and_track_statistics(name: str) -> None:
    method = _method(name)
    learned(method, GIVEN, CLOCK)
    norms = [module for module in method.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert all(module.training for module in method.modules())
    assert all(norm.track_running_stats for norm in norms)


@pytest.mark.parametrize("name", ANY)
@pytest.mark.parametrize("count", [2, 3])
def test_predictors_name_every_network_and_every_vote(name: str, count: int) -> None:
    predictors = _method(name, count).predictors()
    own = ["single", *(f"net{k}" for k in range(2, count + 1))]
    assert list(predictors.members) == own
    assert predictors.votes == (*own, "mc", "sv", "hv")


def test_one_network_has_one_answer() -> None:
    assert _method("supervised", 1).predictors().votes == ("single",)


@pytest.mark.parametrize("name", ROWS)
def test_every_parameter_that_learns_is_in_one_group(name: str) -> None:
    method = _method(name)
    grouped = [id(parameter) for group in method.parameter_groups() for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(parameter) for parameter in method.parameters() if parameter.requires_grad)


TEACHERS = ["mean-teacher", "cutmix-seg", "reco"]


@pytest.mark.parametrize("name", TEACHERS)
def test_teachers_see_no_gradient_and_follow_their_students(name: str) -> None:
    method = _method(name, 2, decay=0.75, warmup=False)
    assert torch.equal(_weights(method.teachers), _weights(method.networks))
    learned(method, GIVEN, CLOCK)
    assert not any(p.requires_grad or p.grad is not None for p in method.teachers.parameters())
    before = _weights(method.teachers)
    with torch.no_grad():
        for parameter in method.networks.parameters():
            parameter.add_(1.0)
    method.after_step(CLOCK)
    assert torch.allclose(_weights(method.teachers), before + 0.25)
    method.after_step(Clock(seed=0, step=0, steps=10))
    assert torch.equal(_weights(method.teachers), _weights(method.networks)), "the first step copies"


@pytest.mark.parametrize("name", TEACHERS)
def test_a_teacher_that_warms_up_is_the_mean_of_all_steps_at_first(name: str) -> None:
    method = _method(name, 1, decay=0.99)
    start = _weights(method.networks)
    for step in range(4):
        with torch.no_grad():
            for parameter in method.networks.parameters():
                parameter.add_(1.0)
        method.after_step(Clock(seed=0, step=step, steps=10))
    assert torch.allclose(_weights(method.teachers), start + (1 + 2 + 3 + 4) / 4)


@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("labels", ["eval", "train"])
def test_a_teacher_has_its_own_statistics_or_its_student_s(name: str, labels: str) -> None:
    method = _method(name, 1, labels=labels)
    learned(method, GIVEN, CLOCK)
    before = _statistics(method.teachers)
    method.after_step(Clock(seed=0, step=0, steps=10))
    assert torch.equal(_statistics(method.teachers), before) == (labels == "train")
    assert labels == "train" or torch.equal(_statistics(method.teachers), _statistics(method.networks))


@pytest.mark.parametrize("name", TEACHERS)
def test_a_teacher_answers_or_its_student(name: str) -> None:
    for answers in ("teacher", "student"):
        method = _method(name, 2, answers=answers)
        chosen = method.teachers.networks if answers == "teacher" else method.networks
        assert list(method.predictors().members.values()) == list(chosen)


def _weights(module: nn.Module) -> torch.Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in module.parameters()])


def _statistics(module: nn.Module) -> torch.Tensor:
    return torch.cat([value.flatten().double() for name, value in module.named_buffers() if "running" in name])


PASSES: dict[tuple[str, str], Callable[[int], tuple[int, int]]] = {  # by n: with a gradient, without
    ("supervised", ""): lambda n: (n, 0),
    ("ncps", "joint"): lambda n: (2 * n, 0),
    ("ncps", "lean"): lambda n: (2 * n, 2 * (n - 1)),
    ("ncps", "eval"): lambda n: (2 * n, 2 * n),
    ("ncps-cutmix", "neighbor"): lambda n: (2 * n, n),
    ("ncps-cutmix", "own"): lambda n: (2 * n, 2 * n),
    ("mean-teacher", ""): lambda n: (2 * n, 2 * n),
    ("cutmix-seg", "neighbor"): lambda n: (2 * n, n),
    ("cutmix-seg", "own"): lambda n: (2 * n, 2 * n),
    ("cct", ""): lambda n: (2 * n, 0),
    ("gct", ""): lambda _: (4, 4),
    ("dmt", ""): lambda n: (n, 0),  # of labeled and unlabeled images at once
    ("fixmatch", "neighbor"): lambda n: (2 * n, n),
    ("fixmatch", "own"): lambda n: (2 * n, 2 * n),
    ("unimatch", "neighbor"): lambda n: (4 * n, n),
    ("unimatch", "own"): lambda n: (4 * n, 2 * n),
    ("reco", "neighbor"): lambda n: (2 * n, n),
    ("reco", "own"): lambda n: (2 * n, 2 * n),
}


def test_the_passes_of_every_method_are_counted() -> None:
    assert {name for name, _ in PASSES} == set(ROWS)


@pytest.mark.parametrize("count", [2, 3])
@pytest.mark.parametrize(("name", "variant"), sorted(PASSES))
def test_passes_are_as_many_as_the_design_says(
    name: str, variant: str, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {
        "joint": {"lean": False, "labels": "train"},
        "lean": {"lean": True, "labels": "train"},
        "eval": {"lean": True, "labels": "eval"},
        "neighbor": {"partner": "neighbor"},
        "own": {"partner": "own"},
    }
    method = _method(name, count if name in ANY else 2, **options.get(variant, {}))
    counts = {True: 0, False: 0}
    encode = type(method.network(0)).encode

    def counted(network: Any, x: torch.Tensor) -> Any:
        counts[torch.is_grad_enabled()] += 1
        return encode(network, x)

    monkeypatch.setattr(type(method.network(0)), "encode", counted)
    learned(method, batch(side=32, partner=variant == "own"), CLOCK)
    assert (counts[True], counts[False]) == PASSES[name, variant](count)


@pytest.mark.parametrize("variant", ["train", "eval"])
@pytest.mark.parametrize("name", ANY)
def test_one_graph_lives_at_a_time(name: str, variant: str) -> None:
    """The bytes saved for backward at their peak do not grow with the number of networks."""

    def peak(count: int) -> int:
        alive = {"now": 0, "peak": 0}

        class Saved:
            def __init__(self, tensor: torch.Tensor) -> None:
                self.tensor = tensor
                alive["now"] += tensor.nbytes
                alive["peak"] = max(alive.values())

            def __del__(self) -> None:
                alive["now"] -= self.tensor.nbytes

        method = _method(name, count, **({} if name in {"supervised", "cct", "dmt"} else {"labels": variant}))
        with torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor):
            for loss in method.losses(batch(), Together(count), CLOCK):
                back_propagate(loss, 1.0)
        return alive["peak"]

    assert peak(5) <= 1.05 * peak(2)


@pytest.mark.parametrize("name", ROWS)
def test_every_network_is_said_to_be_complete_once_and_with_its_last_loss(name: str) -> None:
    method = _method(name)
    seen: list[Loss] = []
    for loss in method.losses(GIVEN, Together(method.count), CLOCK):
        back_propagate(loss, 1.0)
        seen.append(loss)
    done = [network for loss in seen for network in loss.completes]
    assert sorted(done) == [f"network {k + 1}" for k in range(method.count)]
