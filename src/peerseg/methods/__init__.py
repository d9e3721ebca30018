"""Ways to learn from labeled and unlabeled images."""

from peerseg.methods.base import Clock, Exchange, Loss, Method, ParameterGroup, Predictors, Wants
from peerseg.methods.losses import cross_supervision, hard_labels, hard_pixels, supervision
from peerseg.methods.ncps import NCPS
from peerseg.methods.ncps_cutmix import NCPSCutMix
from peerseg.methods.supervised import Supervised

__all__ = [
    "NCPS",
    "Clock",
    "Exchange",
    "Loss",
    "Method",
    "NCPSCutMix",
    "ParameterGroup",
    "Predictors",
    "Supervised",
    "Wants",
    "cross_supervision",
    "hard_labels",
    "hard_pixels",
    "supervision",
]
