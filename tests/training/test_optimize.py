"""The optimizer step: the rate's law, and what decays."""

import pytest
import torch
from torch import nn

from oracle import networks
from peerseg.errors import PeersegError
from peerseg.methods import Clock, ParameterGroup, Supervised
from peerseg.training.optimize import Optimization, poly


def test_the_rate_falls_by_the_power_law_every_step() -> None:
    assert [poly(step, 4, 0.9) for step in range(4)] == pytest.approx([1, 0.75**0.9, 0.5**0.9, 0.25**0.9])
    assert poly(3, 4, 0) == 1


def test_one_step_is_sgd_with_momentum_and_decay_on_matrices_alone() -> None:
    layer = nn.Conv2d(1, 1, 1)
    start = (layer.weight.item(), layer.bias.item() if layer.bias is not None else 0.0)
    optimization = Optimization(
        [ParameterGroup("all", tuple(layer.parameters()), scale=2.0)], rate=0.1, momentum=0.9, decay=0.5, power=1.0
    )
    weight, bias, speed = *start, [0.0, 0.0]
    for step in range(2):
        layer.weight.grad, layer.bias.grad = torch.full((1, 1, 1, 1), 3.0), torch.full((1,), 4.0)
        rate = optimization.step(Clock(0, step, 2))
        assert rate == pytest.approx(0.1 * (1 - step / 2))
        speed = [0.9 * speed[0] + 3 + 0.5 * weight, 0.9 * speed[1] + 4]
        weight, bias = weight - 2 * rate * speed[0], bias - 2 * rate * speed[1]
        assert layer.weight.grad is None
    assert layer.weight.item() == pytest.approx(weight, rel=1e-5)
    assert layer.bias.item() == pytest.approx(bias, rel=1e-5)


def test_only_convolutions_decay() -> None:
    layers = nn.ModuleList([nn.Conv2d(1, 1, 1), nn.Linear(2, 2), nn.BatchNorm2d(1)])
    optimization = Optimization([ParameterGroup("all", tuple(layers.parameters()))], rate=1.0, decay=0.5, momentum=0.0)
    before = {name: value.clone() for name, value in layers.named_parameters()}
    for parameter in layers.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimization.step(Clock(0, 0, 2))
    moved = [name for name, value in layers.named_parameters() if not torch.equal(value, before[name])]
    assert moved == ["0.weight"]


def test_every_parameter_is_stepped_once() -> None:
    method = Supervised(networks(2))
    stepped = [id(parameter) for parameter in Optimization(method.parameter_groups()).parameters()]
    assert sorted(stepped) == sorted(id(parameter) for parameter in method.parameters())


def test_a_group_may_ask_for_its_own_optimizer() -> None:
    one, other = nn.Conv2d(1, 1, 1), nn.Conv2d(1, 1, 1)
    groups = [
        ParameterGroup("one", tuple(one.parameters())),
        ParameterGroup("b", tuple(other.parameters()), kind="adamw"),
    ]
    assert sorted(Optimization(groups).state_dict()) == ["adamw", "sgd"]


def test_an_unknown_optimizer_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"optimizer\.name is 'sdg'; did you mean 'sgd'"):
        Optimization(Supervised(networks(1)).parameter_groups(), name="sdg")


def test_adamw_needs_a_momentum_below_one() -> None:
    with pytest.raises(PeersegError, match=r"optimizer.momentum is 1.0, expected a number below 1 for adamw"):
        Optimization([], name="adamw", momentum=1.0)


def test_a_group_may_have_an_optimizer_and_a_rate_of_its_own() -> None:
    own, other = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    groups = [ParameterGroup("a", (own,)), ParameterGroup("b", (other,), kind="adamw", rate=0.25)]
    optimization = Optimization(groups, rate=0.5, momentum=0.9, power=1.0)
    own.grad, other.grad = torch.ones(1), torch.full((1,), 7.0)
    assert optimization.step(Clock(0, 2, 4)) == 0.25
    assert own.item() == 1 - 0.25, "SGD"
    assert other.item() == pytest.approx(1 - 0.125, abs=1e-6), "AdamW's first step is its rate"
