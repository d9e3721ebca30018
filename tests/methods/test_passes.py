"""Single passes: their mode, their statistics, and a batch of one."""

import pytest
import torch
from torch import nn

from oracle import networks
from peerseg.errors import PeersegError
from peerseg.methods import Clock
from peerseg.methods.passes import label, learn

CLOCK = Clock(seed=0, step=0, steps=1)


def test_a_label_pass_that_does_not_track_equals_the_learning_pass_it_precedes() -> None:
    (network,) = networks(1)
    images = torch.randn(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before = {name: value.clone() for name, value in network.state_dict().items()}
    labels = label(network, images, CLOCK, 0, "view", mode="train", track=False)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    assert torch.equal(labels.long(), learn(network, images, CLOCK, 0, "view").argmax(1))


def test_a_label_pass_in_training_mode_tracks_as_published() -> None:
    (network,) = networks(1)
    images = torch.randn(2, 3, 16, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    before = network.stem[1].running_mean.clone()
    label(network, images, CLOCK, 0, "view", mode="train")
    assert not torch.equal(network.stem[1].running_mean, before)
    assert network.training


def test_a_label_pass_that_fails_leaves_the_network_as_it_was() -> None:
    (network,) = networks(1)
    for mode in ("train", "eval"):
        with pytest.raises(RuntimeError):
            label(network, torch.randn(2, 5, 16, 16), CLOCK, 0, "view", mode=mode, track=False)  # type: ignore[arg-type]
    assert network.training
    assert all(norm.track_running_stats for norm in network.modules() if isinstance(norm, nn.BatchNorm2d))


class _Pooled(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm2d(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise_here: torch.Tensor = self.norm(x.mean(dim=(2, 3), keepdim=True))
        return raise_here


def test_a_batch_of_one_says_what_to_change() -> None:
    with pytest.raises(PeersegError, match=r"set loader\.batch and loader\.unlabeled_batch to 2 or more"):
        learn(_Pooled(), torch.randn(1, 3, 8, 8), CLOCK, 0, "view")


class _Broken(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("something else")


def test_other_mistakes_of_a_network_are_not_hidden() -> None:
    with pytest.raises(ValueError, match="something else"):
        learn(_Broken(), torch.randn(1, 3, 8, 8), CLOCK, 0, "view")
