"""Numbers that no setting can have are refused before anything runs, by the name the user wrote."""

from collections.abc import Callable
from typing import Any

import pytest

from peerseg.errors import PeersegError
from peerseg.experiment.build import build
from peerseg.experiment.settings import Settings

WRONG = {
    "method.weight": -1,
    "method.ramp": 1.5,
    "method.threshold": 2,
    "optimizer.rate": -0.1,
    "optimizer.momentum": 1.1,
    "optimizer.decay": -1,
    "optimizer.power": -1,
    "network.width": 0,
    "network.dropout": -1,
    "data.size": 2,
    "loader.workers": -1,
    "loader.batch": 0,
    "loader.scales": [0.0],
    "evaluation.every": 0,
    "evaluation.window": 0,
    "evaluation.overlap": 1,
    "evaluation.scales": [],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_number_out_of_range_is_refused(tiny: Callable[..., Settings], name: str) -> None:
    value: Any = WRONG[name]
    with pytest.raises(PeersegError, match=rf"{name} is .*, expected"):
        build(tiny({name: value}))
