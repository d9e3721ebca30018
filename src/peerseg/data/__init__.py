"""Images, masks and the stream of batches made of them."""

from peerseg.data.batch import Batch, View
from peerseg.data.cityscapes import Cityscapes
from peerseg.data.dataset import SegmentationDataset, Split, UnlabeledImages
from peerseg.data.folder import ImageFolder
from peerseg.data.labels import IGNORE, UNLABELED, LabelSpace
from peerseg.data.shapes import Shapes
from peerseg.data.voc import Voc

__all__ = [
    "IGNORE",
    "UNLABELED",
    "Batch",
    "Cityscapes",
    "ImageFolder",
    "LabelSpace",
    "SegmentationDataset",
    "Shapes",
    "Split",
    "UnlabeledImages",
    "View",
    "Voc",
]
