"""One process: the null object of placement."""

import os
from contextlib import suppress

import pytest
import torch

from oracle import batch, networks
from peerseg.errors import PeersegError
from peerseg.methods import Supervised
from peerseg.placement import OneProcess, single


def test_labels_come_back_in_network_order() -> None:
    own = {1: torch.ones(1), 0: torch.zeros(1)}
    assert [int(answer) for answer in OneProcess(2, "cpu").exchange(own)] == [0, 1]


def test_one_process_holds_everything_and_changes_nothing() -> None:
    placement, method, given = OneProcess(2, "cpu", "float32"), Supervised(networks(2)), batch()
    placement.place(method)
    placement.reduce(method.parameters())
    moved = placement.move(given)
    assert torch.equal(moved.images, given.images)
    assert moved.masks is given.masks
    assert (placement.share, placement.part, placement.main) == (1.0, 0, True)
    assert placement.describe() == "cpu in float32"
    assert list(placement.exchange.members) == [0, 1]


def test_another_device_gets_every_tensor_of_the_batch() -> None:
    moved = OneProcess(2, "meta").move(batch(partner=True))
    assert moved.unlabeled is not None
    assert moved.partner is not None
    tensors = [moved.images, moved.masks, moved.inside, moved.unlabeled.images, moved.partner.strong[0], moved.boxes[0]]
    assert {tensor.device.type for tensor in tensors} == {"meta"}


@pytest.mark.parametrize("wanted", [True, False])
def test_channels_lie_together_if_asked_for(wanted: bool) -> None:
    placement, method = OneProcess(1, "cpu", channels_last=wanted), Supervised(networks(1))
    placement.place(method)
    weight = next(parameter for parameter in method.parameters() if parameter.ndim == 4)
    for tensor in (placement.move(batch()).images, weight):
        assert tensor.is_contiguous(memory_format=torch.channels_last) == wanted


@pytest.mark.parametrize(("precision", "halved"), [("float32", False), ("bfloat16", True), ("auto", True)])
def test_convolutions_learn_in_the_precision_asked_for(
    monkeypatch: pytest.MonkeyPatch, precision: single.Precision, halved: bool
) -> None:
    monkeypatch.setattr(single, "has_bfloat16", lambda device: True)
    placement, network = OneProcess(1, "cpu", precision), networks(1)[0].float()
    with placement.learning():
        logits = network(batch().images.float())
    assert (logits.dtype == torch.bfloat16) == halved
    assert placement.describe() == f"cpu in {'bfloat16' if halved else 'float32'}"


def test_a_pass_without_gradient_takes_none_from_the_next() -> None:
    placement, network = OneProcess(1, "cpu", "bfloat16"), networks(1)[0].float()
    images = batch().images.float()
    with placement.learning():
        with torch.no_grad():
            network(images)
        logits = network(images)
    logits.float().sum().backward()
    assert all(parameter.grad is not None for parameter in network.parameters())


@pytest.mark.parametrize(
    ("capabilities", "known"), [({"avx512_bf16": True}, True), ({"bf16": True}, True), ({"avx2": True}, False)]
)
def test_auto_asks_the_processor(monkeypatch: pytest.MonkeyPatch, capabilities: dict[str, bool], known: bool) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    assert single.has_bfloat16(torch.device("cpu")) == known
    assert not single.has_bfloat16(torch.device("meta"))
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert not single.has_bfloat16(torch.device("cpu"))


@pytest.mark.parametrize(("there", "found"), [(False, "cpu"), (True, "meta")])
def test_auto_takes_an_accelerator_if_there_is_one(monkeypatch: pytest.MonkeyPatch, there: bool, found: str) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: there)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("meta"))
    assert OneProcess(1).describe().startswith(f"{found} in ")


@pytest.mark.parametrize("name", ["gpu", "cuda:99"])
def test_a_device_that_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(PeersegError, match=rf"placement\.device is '{name}', which this machine does not offer"):
        OneProcess(1, name)


def _wish() -> tuple[bool, bool, bool]:
    filling = torch.utils.deterministic.fill_uninitialized_memory
    return torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled(), filling


def test_an_accelerator_is_asked_for_the_same_bits_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "_find", lambda name: torch.device("cuda"))
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    before = _wish()
    with OneProcess(2).running():
        assert _wish() == (True, True, False)
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"
    assert _wish() == before == (False, False, True)


def test_the_wish_ends_with_a_mistake_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(single, "_find", lambda name: torch.device("cuda"))
    with suppress(KeyError), OneProcess(2).running():
        raise KeyError
    assert _wish() == (False, False, True)


@pytest.mark.parametrize(("device", "deterministic"), [("cuda", False), ("cpu", True), ("mps", True)])
def test_nothing_is_asked_for_in_vain(monkeypatch: pytest.MonkeyPatch, device: str, deterministic: bool) -> None:
    monkeypatch.setattr(single, "_find", torch.device)
    with OneProcess(2, device, deterministic=deterministic).running():
        assert _wish() == (False, False, True)
