"""Cityscapes, the 19 classes of its evaluation, and the splits every semi-supervised result is published on."""

from pathlib import Path
from typing import Literal

from peerseg.data.classes import ClassTable
from peerseg.data.dataset import Image, SegmentationDataset, Split
from peerseg.data.files import find_files, image_size, read_image, read_stored_mask
from peerseg.data.labels import IGNORE, LabelSpace, Mask, value_table
from peerseg.data.published import Published, published_split
from peerseg.errors import PeersegError

TREE = "leftImg8bit/{train,val}/CITY/*_leftImg8bit.png and gtFine/{train,val}/CITY/*_gtFine_labelIds.png"
IMAGE_ENDING = "_leftImg8bit"
SPACE = LabelSpace(
    (
        *("road", "sidewalk", "building", "wall", "fence", "pole", "traffic light", "traffic sign", "vegetation"),
        *("terrain", "sky", "person", "rider", "car", "truck", "bus", "train", "motorcycle", "bicycle"),
    ),
    (
        *((128, 64, 128), (244, 35, 232), (70, 70, 70), (102, 102, 156), (190, 153, 153), (153, 153, 153)),
        *((250, 170, 30), (220, 220, 0), (107, 142, 35), (152, 251, 152), (70, 130, 180), (220, 20, 60)),
        *((255, 0, 0), (0, 0, 142), (0, 0, 70), (0, 60, 100), (0, 80, 100), (0, 0, 230), (119, 11, 32)),
    ),
)
RAW = (7, 8, 11, 12, 13, 17, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 31, 32, 33)  # what labelIds call the 19 classes
RAW_COUNT = 34
TABLES = {
    "labelIds": ClassTable(SPACE, dict.fromkeys(range(RAW_COUNT), IGNORE) | {raw: k for k, raw in enumerate(RAW)}, {}),
    "labelTrainIds": ClassTable(SPACE, value_table(range(len(SPACE)), unlabeled=None), {}),
}
PUBLISHED = Published(
    name="Cityscapes",
    train=2975,
    val=500,
    line="/images/train/{id}.png\t/segmentation/train/{id}_gtFine.png",
    hashes={
        16: ("4f2712f22e53acdf", "24ce8d93af159137"),
        8: ("beee3025dd198cee", "0a3f81fc4a193ab5"),
        4: ("1eff973e47da3c59", "d0305130428ef901"),
        2: ("79cc85ca788bdf79", "7ef43d3d25669adb"),
    },
    remedy="the published order follows no rule: give the folder DATA/city/config_new of the CPS code "
    "(github.com/charlesCXK/TorchSemiSeg), which holds it as train.txt, as --data.lists",
)


class Cityscapes(SegmentationDataset):
    """Cityscapes as published: finely annotated images of the train and val cities.

    Args:
        root: Holds ``leftImg8bit/`` and ``gtFine/`` with a folder for each city below ``train`` and ``val``.
        ratio: R: every R-th training image is labeled, the others are unlabeled.
        lists: A folder whose ``train.txt`` gives the order that is counted in; or whose ``labeled.txt``,
            ``unlabeled.txt`` or ``val.txt`` replace the rule.
        masks: "labelIds": as published; "labelTrainIds": converted by the data set's own scripts.
    """

    label_space = SPACE

    def __init__(
        self,
        root: str | Path,
        *,
        ratio: int = 8,
        lists: str | Path | None = None,
        masks: Literal["labelIds", "labelTrainIds"] = "labelIds",
    ) -> None:
        self._root, self._masks = Path(root), masks
        train, val = (_find(self._root / "leftImg8bit" / part) for part in ("train", "val"))
        self._images = train | val
        self.ids = tuple(self._images)
        folder = None if lists is None else Path(lists)
        self._split, note = published_split(PUBLISHED, tuple(train), tuple(val), ratio, folder)
        self.notes = (note,)

    def image(self, id: str) -> Image:
        """Read one photograph; see ``SegmentationDataset.image``."""
        return read_image(self._images[id])

    def mask(self, id: str) -> Mask | None:
        """Read one mask; see ``SegmentationDataset.mask``."""
        city = self._images[id].parent
        path = self._root / "gtFine" / city.parent.name / city.name / f"{id}_gtFine_{self._masks}.png"
        stored = read_stored_mask(path)
        if self._masks == "labelIds" and stored.max() == IGNORE:
            raise PeersegError(
                f"{str(path)!r} holds the value 255, which labelIds never do: it seems to hold train ids, rename it and set "
                "data.masks to labelTrainIds"
            )
        return TABLES[self._masks].translate(stored, path)

    def size(self, id: str) -> tuple[int, int]:
        """The photograph's size, from its header."""
        return image_size(self._images[id])

    def file(self, id: str) -> str:
        """The photograph's path."""
        return str(self._images[id])

    def split(self) -> Split:
        """The published split, or that of the lists."""
        return self._split


def _find(folder: Path) -> dict[str, Path]:
    """Id -> photograph, sorted."""
    found = find_files(folder, (".png",))
    images = {path.stem.removesuffix(IMAGE_ENDING): path for path in found.values() if path.stem.endswith(IMAGE_ENDING)}
    if not images:
        raise PeersegError(f"{str(folder)!r} holds no *{IMAGE_ENDING}.png: data.root must hold {TREE}")
    return images
