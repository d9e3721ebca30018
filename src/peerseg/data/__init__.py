"""Images, masks and the stream of batches made of them."""

from peerseg.data.batch import Batch, View
from peerseg.data.dataset import SegmentationDataset, Split, UnlabeledImages
from peerseg.data.folder import ImageFolder
from peerseg.data.labels import IGNORE, UNLABELED, LabelSpace
from peerseg.data.shapes import Shapes

__all__ = [
    "IGNORE",
    "UNLABELED",
    "Batch",
    "ImageFolder",
    "LabelSpace",
    "SegmentationDataset",
    "Shapes",
    "Split",
    "UnlabeledImages",
    "View",
]
