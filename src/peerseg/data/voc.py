"""Pascal VOC 2012 with the masks of SegmentationClassAug, and the splits every semi-supervised result is published on."""

from pathlib import Path

from peerseg.data.classes import ClassTable, pack_colors
from peerseg.data.dataset import Image, SegmentationDataset, Split
from peerseg.data.files import find_files, image_size, read_image, read_stored_mask
from peerseg.data.labels import Mask, labels_of, value_table
from peerseg.data.published import Published, published_split, read_ids
from peerseg.errors import PeersegError

TREE = "JPEGImages/*.jpg, SegmentationClass/*.png, SegmentationClassAug/*.png and ImageSets/Segmentation/val.txt"
SPACE = labels_of(
    (
        *("background", "aeroplane", "bicycle", "bird", "boat", "bottle", "bus", "car", "cat", "chair", "cow"),
        *("diningtable", "dog", "horse", "motorbike", "person", "pottedplant", "sheep", "sofa", "train", "tvmonitor"),
    )
)
VOID = (224, 224, 192)  # what masks saved in color show where there is no class
TABLE = ClassTable(SPACE, value_table(range(21), unlabeled=None), pack_colors(SPACE.colors, ignore=VOID))
PUBLISHED = Published(
    name="Pascal VOC 2012",
    train=10582,
    val=1449,
    line="{id}",
    hashes={
        16: ("7dada8ccc5eb6309", "49b06340ca1534c3"),
        8: ("df63f50a798512c3", "b93006960bd75171"),
        4: ("62c450787069b36d", "a84acda9b7087bb4"),
        2: ("192132b4f645339d", "415761b09b2b5869"),
    },
    remedy="published are the ids of SegmentationClassAug that val.txt lacks, sorted",
)


class Voc(SegmentationDataset):
    """Pascal VOC 2012 as published, and SegmentationClassAug beside it.

    Args:
        root: ``VOCdevkit/VOC2012``: holds ``JPEGImages/``, ``SegmentationClass/`` (whose masks judge),
            ``SegmentationClassAug/`` (whose masks train) and ``ImageSets/Segmentation/val.txt``.
        ratio: R: every R-th training image is labeled, the others are unlabeled.
        lists: A folder whose ``labeled.txt``, ``unlabeled.txt``, ``val.txt`` or ``train.txt`` replace the rule.
    """

    label_space = SPACE

    def __init__(self, root: str | Path, *, ratio: int = 8, lists: str | Path | None = None) -> None:
        self._root = Path(root)
        _check_tree(self._root)
        judges = read_ids(self._root / "ImageSets" / "Segmentation" / "val.txt")
        self._judged = frozenset(judges)
        train = [id for id in find_files(self._root / "SegmentationClassAug", (".png",)) if id not in self._judged]
        self.ids = (*train, *judges)
        self._split, note = published_split(PUBLISHED, train, judges, ratio, None if lists is None else Path(lists))
        self.notes = (note,)
        _check_images(self)

    def image(self, id: str) -> Image:
        """Read one photograph; see ``SegmentationDataset.image``."""
        return read_image(Path(self.file(id)))

    def mask(self, id: str) -> Mask | None:
        """Read one mask; see ``SegmentationDataset.mask``."""
        folder = "SegmentationClass" if id in self._judged else "SegmentationClassAug"
        path = self._root / folder / f"{id}.png"
        return TABLE.translate(read_stored_mask(path), path)

    def size(self, id: str) -> tuple[int, int]:
        """The photograph's size, from its header."""
        return image_size(Path(self.file(id)))

    def file(self, id: str) -> str:
        """The photograph's path."""
        return str(self._root / "JPEGImages" / f"{id}.jpg")

    def split(self) -> Split:
        """The published split, or that of the lists."""
        return self._split


def _check_tree(root: Path) -> None:
    for name in ("JPEGImages", "SegmentationClass", "SegmentationClassAug"):
        if not (root / name).is_dir():
            raise PeersegError(
                f"{str(root / name)!r} is no folder: data.root must be VOCdevkit/VOC2012 and hold {TREE}"
            )


def _check_images(dataset: Voc) -> None:
    missing = next((id for id in dataset.ids if not Path(dataset.file(id)).is_file()), None)
    if missing is not None:
        raise PeersegError(
            f"{dataset.file(missing)!r} does not exist, but the lists name it: unpack the photographs anew"
        )
