"""One optimizer step: SGD with momentum, decay on convolution weights alone, the rate falling by a power law."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

import torch
from torch import nn

from peerseg.errors import PeersegError, check_between, nearest
from peerseg.methods.base import Clock, ParameterGroup

Kind = Literal["sgd", "adamw"]
CONVOLUTION = 4  # axes of its weight


def poly(step: int, steps: int, power: float) -> float:
    """The factor of the learning rate: ``(1 - step/steps) ** power``.

    Args:
        step: Counted from 0.
        steps: Of the whole training.
        power: 0.9 in the paper; 0 keeps the rate.

    Returns:
        1 at the first step, towards 0 at the last.
    """
    return float((1 - step / steps) ** power)


class Optimization:
    """The optimizers of a method's parameter groups.

    Args:
        groups: From ``Method.parameter_groups``.
        name: "sgd" or "adamw", for groups that ask for none themselves.
        rate: Learning rate at the first step.
        momentum: Of SGD, and the first of AdamW's two.
        decay: Weight decay of convolutions; nothing else has any.
        power: Of the falling rate.
    """

    def __init__(
        self,
        groups: Sequence[ParameterGroup],
        *,
        name: Kind = "sgd",
        rate: float = 0.02,
        momentum: float = 0.9,
        decay: float = 1e-4,
        power: float = 0.9,
    ) -> None:
        self._rate, self._power = rate, power
        check_between("optimizer.rate", rate, 0)
        check_between("optimizer.momentum", momentum, 0, 1)
        check_between("optimizer.decay", decay, 0)
        check_between("optimizer.power", power, 0)
        kinds = {group.kind or name for group in groups}
        if "adamw" in kinds | {name} and momentum == 1:
            raise PeersegError("optimizer.momentum is 1.0, expected a number below 1 for adamw")
        unknown = sorted(kinds - set(get_args(Kind)))
        if unknown:
            raise PeersegError(f"optimizer.name is {unknown[0]!r}; {nearest(unknown[0], get_args(Kind))}")
        self._optimizers = {
            kind: _make(
                kind, _split([group for group in groups if (group.kind or name) == kind], rate, decay), momentum
            )
            for kind in sorted(kinds)
        }

    def parameters(self) -> list[nn.Parameter]:
        """Everything that is stepped."""
        groups = (group for optimizer in self._optimizers.values() for group in optimizer.param_groups)
        return [parameter for group in groups for parameter in group["params"]]

    def step(self, clock: Clock) -> float:
        """Step every parameter by its gradient, and clear the gradients.

        Args:
            clock: Decides the rate.

        Returns:
            The learning rate of this step.
        """
        factor = poly(clock.step, clock.steps, self._power)
        for optimizer in self._optimizers.values():
            for group in optimizer.param_groups:
                group["lr"] = group["first_rate"] * factor
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        return self._rate * factor

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs: tensors and plain data."""
        return {kind: optimizer.state_dict() for kind, optimizer in self._optimizers.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what ``state_dict`` gave.

        Args:
            state: From a checkpoint of the same settings.
        """
        for kind, optimizer in self._optimizers.items():
            optimizer.load_state_dict(state[kind])


def _split(groups: Sequence[ParameterGroup], rate: float, decay: float) -> list[dict[str, Any]]:
    """Each group twice: the weights of convolutions, which decay, and the rest, which do not."""
    made = []
    for group in groups:
        for decays in (True, False):
            chosen = [p for p in group.parameters if (p.ndim == CONVOLUTION) == decays and p.requires_grad]
            if chosen:
                first = group.scale * (rate if group.rate is None else group.rate)
                wanted = {"params": chosen, "lr": first, "first_rate": first}
                made.append(wanted | {"weight_decay": decay if decays else 0.0})
    return made


def _make(kind: str, groups: list[dict[str, Any]], momentum: float) -> torch.optim.Optimizer:
    if kind == "sgd":
        return torch.optim.SGD(groups, momentum=momentum)
    return torch.optim.AdamW(groups, betas=(momentum, 0.999))
