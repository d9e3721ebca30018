"""Semantic segmentation from a few masks and many images: n networks teach one another and answer by a vote."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from peerseg.experiment.ensemble import Ensemble

__version__ = "0.1.0"


def load(run: "str | Path", checkpoint: str = "best") -> "Ensemble":
    """A trained run as something that answers.

    Args:
        run: The folder that ``peerseg train`` wrote.
        checkpoint: "best" or "last".

    Returns:
        An object whose ``predict(image)`` gives labels, confidence and disagreement.
    """
    from peerseg.experiment.ensemble import Ensemble

    return Ensemble(run, checkpoint)
