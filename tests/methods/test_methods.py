"""What every method of the name table promises."""

import pytest
import torch

from oracle import batch, networks
from peerseg.data.batch import cut
from peerseg.experiment.tables import METHODS, imported
from peerseg.methods import Clock, Method
from peerseg.placement.single import Together

CLOCK = Clock(seed=3, step=5, steps=10)
ROWS = sorted(METHODS)


def _method(name: str, count: int = 3) -> Method:
    method: Method = imported(METHODS[name])(networks(count))
    return method


@pytest.mark.parametrize("name", ROWS)
def test_yielding_equals_summing(name: str) -> None:
    split, joint = _method(name), _method(name)
    for loss in split.losses(batch(), Together(3), CLOCK):
        loss.value.backward()
    torch.stack([loss.value for loss in joint.losses(batch(), Together(3), CLOCK)]).sum().backward()
    for one, other in zip(split.parameters(), joint.parameters(), strict=True):
        assert one.grad is not None
        assert torch.allclose(one.grad, other.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ROWS)
def test_parts_of_a_batch_have_the_gradients_of_the_whole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.BatchNorm2d, "forward", lambda norm, x: x * norm.weight[:, None, None])
    given, found = batch(labeled=4, unlabeled=4), []
    for parts in (1, 2):
        method: Method = imported(METHODS[name])(networks(3, dropout=0))
        for piece in cut(given, parts):
            for loss in method.losses(piece, Together(3), CLOCK):
                (loss.value / parts).backward()
        found.append(torch.cat([p.grad.flatten() for p in method.parameters() if p.grad is not None]))
    assert (found[1] - found[0]).abs().max() <= 1e-12 * found[0].abs().max()


@pytest.mark.parametrize("name", ROWS)
def test_chance_follows_from_the_step_and_leaves_the_default_generator_alone(name: str) -> None:
    def losses(clock: Clock) -> list[float]:
        return [float(loss.value.detach()) for loss in _method(name).losses(batch(), Together(3), clock)]

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
    list(method.losses(batch(), Together(3), CLOCK))
    norms = [module for module in method.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert all(module.training for module in method.modules())
    assert all(norm.track_running_stats for norm in norms)


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("count", [2, 3])
def test_predictors_name_every_network_and_every_vote(name: str, count: int) -> None:
    predictors = _method(name, count).predictors()
    own = ["single", *(f"net{k}" for k in range(2, count + 1))]
    assert list(predictors.members) == own
    assert predictors.votes == (*own, "mc", "sv", "hv")


def test_one_network_has_one_answer() -> None:
    assert _method("supervised", 1).predictors().votes == ("single",)


@pytest.mark.parametrize("name", ROWS)
def test_every_parameter_is_in_one_group(name: str) -> None:
    method = _method(name)
    grouped = [id(parameter) for group in method.parameter_groups() for parameter in group.parameters]
    assert sorted(grouped) == sorted(id(parameter) for parameter in method.parameters())


PASSES = {  # by n: with a gradient, without
    ("supervised", ""): lambda n: (n, 0),
    ("ncps", "joint"): lambda n: (2 * n, 0),
    ("ncps", "lean"): lambda n: (2 * n, 2 * (n - 1)),
    ("ncps", "eval"): lambda n: (2 * n, 2 * n),
    ("ncps-cutmix", "neighbor"): lambda n: (2 * n, n),
    ("ncps-cutmix", "own"): lambda n: (2 * n, 2 * n),
}


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize(("name", "variant"), sorted(PASSES))
def test_passes_are_as_many_as_the_design_says(name: str, variant: str, count: int) -> None:
    options = {
        "joint": {"lean": False, "labels": "train"},
        "lean": {"lean": True, "labels": "train"},
        "eval": {"lean": True, "labels": "eval"},
        "neighbor": {"partner": "neighbor"},
        "own": {"partner": "own"},
    }
    method = imported(METHODS[name])(networks(count), **options.get(variant, {}))
    counts = {True: 0, False: 0}

    def note(*_: object) -> None:
        counts[torch.is_grad_enabled()] += 1

    for network in method.networks:
        network.register_forward_pre_hook(note)
    list(method.losses(batch(partner=variant == "own"), Together(count), CLOCK))
    assert (counts[True], counts[False]) == PASSES[name, variant](count)


@pytest.mark.parametrize("labels", ["train", "eval"])
@pytest.mark.parametrize("name", ["ncps", "ncps-cutmix"])
def test_one_graph_lives_at_a_time(name: str, labels: str) -> None:
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

        method = imported(METHODS[name])(networks(count), labels=labels)
        with torch.autograd.graph.saved_tensors_hooks(Saved, lambda saved: saved.tensor):
            for loss in method.losses(batch(), Together(count), CLOCK):
                loss.value.backward()
        return alive["peak"]

    assert peak(5) <= 1.05 * peak(2)
