"""Networks behind one interface: encode, decode, classify."""

from peerseg.networks.base import SegmentationNetwork
from peerseg.networks.library import library
from peerseg.networks.small import SmallNetwork

__all__ = ["SegmentationNetwork", "SmallNetwork", "library"]
