"""Name tables: what a recipe may name, as import paths, so that nothing is imported before it is used."""

import importlib
import inspect
import sys
from collections.abc import Mapping
from typing import Any

from peerseg.errors import PeersegError, nearest

DATASETS = {
    "cityscapes": "peerseg.data.cityscapes:Cityscapes",
    "folder": "peerseg.data.folder:ImageFolder",
    "shapes": "peerseg.data.shapes:Shapes",
    "voc": "peerseg.data.voc:Voc",
}
NETWORKS = {
    "deeplabv3plus": "peerseg.networks.deeplab:deeplabv3plus",
    "library": "peerseg.networks.library:library",
    "small": "peerseg.networks.small:SmallNetwork",
}
METHODS = {
    "supervised": "peerseg.methods.supervised:Supervised",
    "ncps": "peerseg.methods.ncps:NCPS",
    "ncps-cutmix": "peerseg.methods.ncps_cutmix:NCPSCutMix",
    "mean-teacher": "peerseg.methods.mean_teacher:MeanTeacher",
    "cutmix-seg": "peerseg.methods.cutmix_seg:CutMixSeg",
    "cct": "peerseg.methods.cct:CCT",
    "gct": "peerseg.methods.gct:GCT",
    "fixmatch": "peerseg.methods.fixmatch:FixMatch",
    "unimatch": "peerseg.methods.unimatch:UniMatch",
    "dmt": "peerseg.methods.dmt:DMT",
    "reco": "peerseg.methods.reco:ReCo",
}
PLACEMENTS = {
    "one-process": "peerseg.placement.single:OneProcess",
}
INTERFACES = {
    "data": "peerseg.data.dataset:SegmentationDataset",
    "network": "peerseg.networks.base:SegmentationNetwork",
    "method": "peerseg.methods.base:Method",
    "placement": "peerseg.placement.base:Placement",
}
TABLES: Mapping[str, Mapping[str, str]] = {
    "data": DATASETS,
    "network": NETWORKS,
    "method": METHODS,
    "placement": PLACEMENTS,
}
# Sections that name nothing: their keys are the keywords of one thing.
FIXED = {
    "optimizer": "peerseg.training.optimize:Optimization",
    "loader": "peerseg.experiment.plans:LoaderPlan",
    "evaluation": "peerseg.experiment.plans:EvaluationPlan",
}


def target(section: str, name: str | None) -> Any:
    """What a section's keys are the keywords of.

    Args:
        section: "data", "network" ...
        name: A name of its table, or an import path with a colon; None for a section that names nothing.

    Returns:
        The class or function.
    """
    if section in FIXED:
        return imported(FIXED[section])
    table = TABLES[section]
    if name in table:
        return imported(table[str(name)])
    if name is None or ":" not in str(name):
        raise PeersegError(f"{section}.name is {name!r}; {nearest(str(name), table)}")
    if "" not in sys.path:
        sys.path.append("")  # the folder one is in
    found, interface = imported(str(name)), imported(INTERFACES[section])
    if not (inspect.isclass(found) and issubclass(found, interface)):
        raise PeersegError(
            f"{section}.name is {name!r}, which is no class derived from {interface.__module__}.{interface.__qualname__}: derive it"
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise PeersegError(f"{section}.name is {name!r}, which leaves out {missing}: define it")
    return found


def imported(path: str) -> Any:
    """Import an attribute of a module.

    Args:
        path: ``"module:attribute"``.

    Returns:
        The attribute.
    """
    module, _, attribute = path.partition(":")
    try:
        return getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise PeersegError(
            f"{path!r} cannot be imported ({error}): expected 'module:Class' on the Python path"
        ) from error
