"""Where networks live and how they reach one another."""

from peerseg.placement.base import Placement
from peerseg.placement.single import OneProcess

__all__ = ["OneProcess", "Placement"]
