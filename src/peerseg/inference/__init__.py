"""Answers of trained networks: prediction, votes and scores."""

from peerseg.inference.evaluate import Scores, confusion, evaluate
from peerseg.inference.predict import Prediction, predict
from peerseg.inference.protocol import Protocol
from peerseg.inference.voting import vote

__all__ = ["Prediction", "Protocol", "Scores", "confusion", "evaluate", "predict", "vote"]
