"""DeepLabV3+ against the published network, transcribed naively; and its head on other encoders."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from peerseg.errors import PeersegError
from peerseg.networks import DeepLabV3Plus, deeplabv3plus, load_reference
from published import BLOCKS, published_logits

CLASSES = 5


def _made(encoder: str, classes: int = CLASSES, seed: int = 0, weights: str | None = None) -> DeepLabV3Plus:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return deeplabv3plus(encoder, classes, weights=weights)


def _authors(network: DeepLabV3Plus, prefix: str = "") -> dict[str, Tensor]:
    """The weights in the authors' naming."""
    return {prefix + name: t.clone() for name, t in network.state_dict().items() if name not in ("mean", "std")}


def _lived(encoder: str) -> dict[str, Tensor]:
    """Weights in the authors' naming after a pass, so that running statistics are those of real features."""
    network = _made(encoder, seed=5).train()
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    for norm in norms:
        norm.momentum = 1.0
        torch.nn.init.uniform_(norm.weight, 0.5, 1.0, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        network(_images(4))
    return _authors(network)


def _images(count: int = 2, height: int = 65, width: int = 97) -> Tensor:
    return torch.randn(count, 3, height, width, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("encoder", ["resnet50s", "resnet101s"])
@pytest.mark.parametrize("training", [False, True])
def test_logits_are_those_of_the_authors(encoder: str, training: bool) -> None:
    network, state = _made(encoder), _lived(encoder)
    load_reference([network], state)
    network.train(training)
    with torch.no_grad():
        own = network(_images())
        wanted = published_logits(state, _images(), BLOCKS[encoder], training=training)
    assert own.shape == (2, CLASSES, 65, 97)
    assert (own - wanted).abs().max() <= 1e-5
    assert wanted.std() > 0.1, "a difference would show"
    after = network.state_dict()
    assert all(torch.allclose(after[name], state[name], atol=1e-6) for name in state if "running" in name)


@pytest.mark.parametrize(("encoder", "millions"), [("resnet50s", 40.48), ("resnet101s", 59.47)])
def test_as_many_weights_as_published(encoder: str, millions: float) -> None:
    network = deeplabv3plus(encoder, 21, weights=None)
    assert sum(p.numel() for p in network.parameters()) / 1e6 == pytest.approx(millions, abs=0.005)
    norms = [module for module in network.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert len(norms) == {"resnet50s": 61, "resnet101s": 112}[encoder]
    assert {(norm.eps, norm.momentum) for norm in norms} == {(1e-5, 0.1)}


def test_strides_and_dilations_are_those_of_the_text() -> None:
    network = _made("resnet50s").eval()
    with torch.no_grad():
        fine, coarse = network.encode(_images(1, 128, 160))
    assert (fine.shape, coarse.shape) == ((1, 256, 32, 40), (1, 2048, 8, 10))
    last = dict(network.backbone.named_children())["layer4"]
    assert [block.conv2.dilation for block in last] == [(2, 2), (4, 4), (8, 8)]


def test_the_first_weights_of_head_and_classifier_are_the_authors() -> None:
    network = _made("resnet18", classes=2)
    for name in ("head.aspp.map_convs.2.weight", "head.last_conv.0.weight", "classifier.weight"):
        weight = network.state_dict()[name]
        fan_in = weight[0].numel()
        assert weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.1)
    assert network.classifier.bias is not None
    assert 0 < network.classifier.bias.abs().max() <= 256**-0.5


def test_n_networks_are_filled_from_their_branches() -> None:
    pair = [_made("resnet18", seed=k) for k in range(2)]
    state = _authors(_made("resnet18", seed=8), "branches.0.") | _authors(_made("resnet18", seed=9), "branches.1.")
    load_reference(pair, state)
    for j, network in enumerate(pair):
        own = network.state_dict()
        names = [name.removeprefix(f"branches.{j}.") for name in state if name.startswith(f"branches.{j}.")]
        assert names
        assert all(torch.equal(own[name], state[f"branches.{j}.{name}"]) for name in names)
        assert set(own) - set(names) == {"mean", "std"}


@pytest.mark.parametrize("name", ["backbone.layer4.0.conv1.weight", "head.aspp.red_bn.running_var", "classifier.bias"])
def test_one_missing_key_is_refused_and_nothing_is_filled(name: str) -> None:
    network = _made("resnet18")
    state = {key: tensor + 1 for key, tensor in _authors(network).items() if key != name}
    before = {key: tensor.clone() for key, tensor in network.state_dict().items()}
    with pytest.raises(PeersegError, match=f"the weights lack '{name}': expected those of the authors' network"):
        load_reference([network], state)
    assert all(torch.equal(tensor, before[key]) for key, tensor in network.state_dict().items())


def test_keys_and_shapes_that_are_not_the_authors_are_refused() -> None:
    network = _made("resnet18")
    state = _authors(network)
    with pytest.raises(PeersegError, match=r"the weights have the unknown 'head.extra' and 1 more"):
        load_reference([network], state | {"head.extra": torch.zeros(1), "other": torch.zeros(1)})
    with pytest.raises(PeersegError, match=r"the weights have another shape for 'classifier.weight'"):
        load_reference([network], state | {"classifier.weight": torch.zeros(3, 256, 1, 1)})


def test_a_whole_checkpoint_is_not_its_weights() -> None:
    with pytest.raises(
        PeersegError, match=r"a whole checkpoint of the authors, expected its weights: give checkpoint\['m"
    ):
        load_reference([], {"model": torch.zeros(1)})


def test_another_number_of_networks_is_refused() -> None:
    network = _made("resnet18")
    state = _authors(network, "branches.0.") | _authors(network, "branches.1.")
    with pytest.raises(PeersegError, match=r"the weights hold 2 networks .*, 1 were given: give 2 networks to fill"):
        load_reference([network], state)


@pytest.mark.parametrize("wrap", [False, True])
def test_imagenet_files_in_the_authors_naming_fill_the_encoder(tmp_path: Path, wrap: bool) -> None:
    given = _authors(_made("resnet50s", seed=3))
    wanted = {key.removeprefix("backbone."): t for key, t in given.items() if key.startswith("backbone.")}
    saved = {key: t for key, t in wanted.items() if not key.endswith("num_batches_tracked")}  # as files of that time
    saved |= {"fc.weight": torch.zeros(1000, 2048), "fc.bias": torch.zeros(1000)}
    path = tmp_path / "resnet50_v1c.pth"
    torch.save({"model": saved} if wrap else saved, path)
    own = _made("resnet50s", weights=str(path)).backbone.state_dict()
    assert all(torch.equal(own[key], wanted[key]) for key in saved if key in wanted)


def test_a_file_with_the_other_stem_of_that_name_is_refused(tmp_path: Path) -> None:
    # Two kinds of files are called resnet50_v1c; this one begins with 32 channels.
    other = _made("resnet50c").backbone.state_dict()
    torch.save(dict(other), tmp_path / "resnet50_v1c.pth")
    with pytest.raises(PeersegError, match=r"has another shape for 'conv1.0.weight' .* it is not of this encoder"):
        deeplabv3plus("resnet50s", 2, weights=str(tmp_path / "resnet50_v1c.pth"))


@pytest.mark.parametrize("encoder", ["resnet18", "resnet34", "mobilenetv3_small_100", "efficientnet_lite0"])
def test_the_head_stands_on_other_encoders(encoder: str) -> None:
    network = _made(encoder).eval()
    with torch.no_grad():
        fine, coarse = network.encode(_images(1, 64, 96))
        assert (fine.shape[2:], coarse.shape[2:]) == ((16, 24), (4, 6))
        assert network(_images(1, 65, 97)).shape == (1, CLASSES, 65, 97)


def test_the_last_stage_of_a_small_resnet_is_dilated_too() -> None:
    last = dict(_made("resnet18").backbone.named_children())["layer4"]
    assert [(block.conv1.dilation, block.conv2.dilation) for block in last] == [((2, 2), (2, 2)), ((4, 4), (4, 4))]


@pytest.mark.parametrize(
    ("encoder", "words"),
    [
        ("resnet50ss", "network.encoder is 'resnet50ss', which timm does not know; did you mean 'resnet50"),
        ("qqqqqqqq", "network.encoder is 'qqqqqqqq', which timm does not know; `timm.list_models"),
        (
            "vit_tiny_patch16_224",
            "network.encoder .*vit_tiny_patch16_224.* take a ResNet, a MobileNet or an EfficientNet",
        ),
        ("swin_tiny_patch4_window7_224", "network.encoder .*swin_tiny.* take a ResNet, a MobileNet or an EfficientNet"),
    ],
)
def test_encoders_that_do_not_fit_are_refused(encoder: str, words: str) -> None:
    with pytest.raises(PeersegError, match=words):
        _made(encoder)


def test_unknown_weights_are_refused() -> None:
    with pytest.raises(PeersegError, match=r"network.weights is 'imagent', expected 'imagenet', a file or null"):
        deeplabv3plus("resnet18", 2, weights="imagent")
    with pytest.raises(TypeError, match="weights"):
        deeplabv3plus("resnet18", 2)  # type: ignore[call-arg]


def test_weights_of_the_hub_that_cannot_be_fetched_are_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    import timm

    def offline(name: str, *, pretrained: bool, **_: object) -> None:
        assert pretrained
        raise OSError("no route to host")

    monkeypatch.setattr(timm, "create_model", offline)
    with pytest.raises(PeersegError, match="'imagenet' weights of 'resnet50s' could not be fetched"):
        deeplabv3plus("resnet50s", 2, weights="imagenet")
