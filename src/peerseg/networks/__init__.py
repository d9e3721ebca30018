"""Networks behind one interface: encode, decode, classify."""

from peerseg.networks.base import SegmentationNetwork
from peerseg.networks.deeplab import DeepLabV3Plus, deeplabv3plus, load_reference
from peerseg.networks.library import library
from peerseg.networks.small import SmallNetwork

__all__ = ["DeepLabV3Plus", "SegmentationNetwork", "SmallNetwork", "deeplabv3plus", "library", "load_reference"]
