"""Ways to learn from labeled and unlabeled images."""

from peerseg.methods.base import Clock, Exchange, Loss, Method, ParameterGroup, Predictors, Wants
from peerseg.methods.cct import CCT
from peerseg.methods.cutmix_seg import CutMixSeg
from peerseg.methods.dmt import DMT
from peerseg.methods.fixmatch import FixMatch
from peerseg.methods.gct import GCT
from peerseg.methods.losses import consistency, cross_supervision, hard_labels, hard_pixels, supervision
from peerseg.methods.mean_teacher import MeanTeacher
from peerseg.methods.ncps import NCPS
from peerseg.methods.ncps_cutmix import NCPSCutMix
from peerseg.methods.reco import ReCo
from peerseg.methods.supervised import Supervised
from peerseg.methods.unimatch import UniMatch

__all__ = [
    "CCT",
    "DMT",
    "GCT",
    "NCPS",
    "Clock",
    "CutMixSeg",
    "Exchange",
    "FixMatch",
    "Loss",
    "MeanTeacher",
    "Method",
    "NCPSCutMix",
    "ParameterGroup",
    "Predictors",
    "ReCo",
    "Supervised",
    "UniMatch",
    "Wants",
    "consistency",
    "cross_supervision",
    "hard_labels",
    "hard_pixels",
    "supervision",
]
