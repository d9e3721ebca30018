"""Checkpoints that a kill at any moment leaves whole: a folder, written beside, flushed, renamed, and known by its hashes.

A folder holds the networks (``network1.safetensors`` ...), what else the method keeps (``method.safetensors``), the
optimizer (``optimizer.pt``), the facts (``state.json``) and the SHA-256 of each file (``manifest.json``).
"""

import hashlib
import io
import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import safetensors.torch
import torch
from torch import Tensor, nn

from peerseg.errors import PeersegError
from peerseg.methods.base import Method
from peerseg.networks.weights import load_tensors, read_weights
from peerseg.runs import disk_errors

Which = Literal["last", "best"]

MANIFEST, STATE, OPTIMIZER, REST = "manifest.json", "state.json", "optimizer.pt", "method.safetensors"
KEPT: dict[Which, int] = {"last": 2, "best": 1}  # one older `last` to fall back to


@dataclass(frozen=True)
class Found:
    """A checkpoint that is whole.

    Args:
        path: Its folder.
        state: Its facts.
        damaged: Newer ones that are not whole, with the reason.
    """

    path: Path
    state: dict[str, Any]
    damaged: tuple[str, ...]


def save(
    folder: Path, which: Which, method: Method, state: Mapping[str, Any], optimizer: Mapping[str, Any] | None = None
) -> Path:
    """Save one checkpoint, whole or not at all, and drop the oldest.

    Args:
        folder: The run's ``checkpoints``.
        which: "last" (to resume) or "best" (to use).
        method: Whose ``state_dict``.
        state: Facts as plain data, ``step`` among them.
        optimizer: Its state; a "best" needs none.

    Returns:
        The checkpoint's folder.
    """
    target = folder / f"{which}-{state['step']:07d}"
    if target.exists() and _damage(target) is None:
        return target
    files = {f"{name}.safetensors": safetensors.torch.save(part) for name, part in _parts(method).items()}
    files[STATE] = json.dumps(dict(state), indent=2).encode()
    if optimizer is not None:
        buffer = io.BytesIO()
        torch.save(dict(optimizer), buffer)
        files[OPTIMIZER] = buffer.getvalue()
    files[MANIFEST] = json.dumps({name: hashlib.sha256(data).hexdigest() for name, data in files.items()}).encode()
    temporary = folder / f".{target.name}"
    with disk_errors(target):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _write(temporary, files)
            if target.exists():
                shutil.rmtree(target)
            temporary.rename(target)
        except OSError:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
        _flush(folder)
    for old in _newest_first(folder, which)[KEPT[which] :]:
        shutil.rmtree(old)
    return target


def find(folder: Path, which: Which) -> Found | None:
    """The newest whole checkpoint.

    Args:
        folder: The run's ``checkpoints``.
        which: "last" or "best".

    Returns:
        The checkpoint, or None where none was ever finished.
    """
    damaged: list[str] = []
    for path in _newest_first(folder, which):
        damage = _damage(path)
        if damage is None:
            return Found(path, json.loads((path / STATE).read_text(encoding="utf8")), tuple(damaged))
        damaged.append(f"{str(path)!r} is damaged ({damage})")
    if damaged:
        way = "use --checkpoint last" if which == "best" else "restore one, or start a new run"
        raise PeersegError(f"no {which!r} checkpoint of this run is whole: {'; '.join(damaged)}; {way}")
    return None


def load_method(path: Path, method: Method) -> None:
    """Fill a method with a checkpoint's weights.

    Args:
        path: The checkpoint's folder.
        method: Filled in place; it must have the same networks.
    """
    state = _read_networks(path, method.count)
    if (path / REST).exists():
        state |= read_weights(path / REST)
    _refuse_others(path, state, method.state_dict())
    method.load_state_dict(state)


def load_networks(path: Path, networks: Sequence[nn.Module]) -> None:
    """Begin with the networks of another run.

    Args:
        path: The folder of one of its checkpoints.
        networks: Filled in place.
    """
    state, all_ = _read_networks(path, len(networks)), nn.ModuleDict({"networks": nn.ModuleList(networks)})
    _refuse_others(path, state, all_.state_dict())
    all_.load_state_dict(state)


def newest(run: Path) -> Path:
    """The newest checkpoint of a run.

    Args:
        run: Its folder.

    Returns:
        The checkpoint's folder.
    """
    found = find(run / "checkpoints", "last")
    if found is None:
        raise PeersegError(f"{str(run)!r} holds no checkpoint: expected a run folder")
    return found.path


def _read_networks(path: Path, count: int) -> dict[str, Tensor]:
    networks = sorted(path.glob("network*.safetensors"))
    if len(networks) != count:
        raise PeersegError(
            f"{str(path)!r} holds {len(networks)} networks, expected {count}: set method.count to {len(networks)}"
        )
    state: dict[str, Tensor] = {}
    for k in range(count):
        part = read_weights(path / f"network{k + 1}.safetensors")
        state |= {f"networks.{k}.{name}": tensor for name, tensor in part.items()}
    return state


def _refuse_others(path: Path, state: Mapping[str, Tensor], own: Mapping[str, Tensor]) -> None:
    for name in sorted(own.keys() | state.keys()):
        if name not in state or name not in own or own[name].shape != state[name].shape:
            there = tuple(state[name].shape) if name in state else "missing"
            here = tuple(own[name].shape) if name in own else "unknown"
            raise PeersegError(
                f"{str(path)!r} does not fit: {name!r} is {there} there and {here} here; expected the same network, classes "
                "and method as in the run's config.yaml"
            )


def load_optimizer(path: Path) -> dict[str, Any]:
    """The optimizer state of a "last" checkpoint.

    Args:
        path: The checkpoint's folder.

    Returns:
        What ``Optimization.state_dict`` gave.
    """
    loaded: dict[str, Any] = load_tensors(path / OPTIMIZER)
    return loaded


def clean(folder: Path, step: int) -> None:
    """Remove what a kill left half written, and what is newer than the step a run goes on from.

    Args:
        folder: The run's ``checkpoints``.
        step: The last step that stays.
    """
    newer = [path for which in KEPT for path in _newest_first(folder, which) if int(path.name.split("-")[1]) > step]
    for path in (*folder.glob(".*-*"), *newer):
        shutil.rmtree(path)


def _parts(method: Method) -> dict[str, dict[str, Tensor]]:
    """The state by file: one a network, so that any placement can resume any other; the rest in one."""
    parts: dict[str, dict[str, Tensor]] = {}
    for name, tensor in method.state_dict().items():
        own = name.startswith("networks.")
        _, index, inner = name.split(".", 2) if own else ("", "", name)
        file = f"network{int(index) + 1}" if own else REST.removesuffix(".safetensors")
        parts.setdefault(file, {})[inner] = tensor.detach().cpu().contiguous()
    return parts


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, data in files.items():
        with (folder / name).open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    _flush(folder)


def _flush(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    os.fsync(descriptor)
    os.close(descriptor)


def _damage(path: Path) -> str | None:
    try:
        manifest = json.loads((path / MANIFEST).read_text(encoding="utf8"))
    except (OSError, ValueError):
        return f"no readable {MANIFEST}"
    for name, digest in manifest.items():
        file = path / name
        if not file.exists():
            return f"{name} is missing"
        if hashlib.sha256(file.read_bytes()).hexdigest() != digest:
            return f"{name} is not what was written"
    return None


def _newest_first(folder: Path, which: Which) -> list[Path]:
    return sorted(folder.glob(f"{which}-*"), key=lambda path: path.name, reverse=True)
