"""Your own pictures: ``images/``, ``masks/`` with the same names, and optionally ``unlabeled/`` and lists."""

from pathlib import Path

from peerseg.data.classes import ClassTable, find_class_table, read_class_table
from peerseg.data.dataset import Image, SegmentationDataset, Split
from peerseg.data.files import image_size, read_image, read_stored_mask
from peerseg.data.labels import Mask
from peerseg.data.layout import LISTS, divide, find_images, find_masks, read_lists
from peerseg.errors import PeersegError, check_between, named


class ImageFolder(SegmentationDataset):
    """A folder of images, some of which have a mask of the same name; the others are unlabeled.

    Args:
        root: Holds ``images/`` and ``masks/``, at any depth; optionally ``unlabeled/``, ``classes.yaml`` and the lists
            ``train.txt``, ``val.txt``, ``labeled.txt`` and ``unlabeled.txt``.
        lists: Another folder to take the lists from, such as one that ``peerseg split`` wrote.
        val: Without a val list, the share of the labeled images that is drawn for it.
        seed: Of that draw.
    """

    def __init__(self, root: str | Path, *, lists: str | Path | None = None, val: float = 0.2, seed: int = 0) -> None:
        if not 0 < val < 1:
            raise PeersegError(f"data.val is {val!r}, expected a share between 0 and 1, such as 0.2")
        check_between("data.seed", seed, 0)
        folder = Path(root)
        self._images = find_images(folder)
        self._masks = find_masks(folder, self._images)
        self.ids = tuple(self._images)
        listed = read_lists(folder if lists is None else Path(lists), self._images)
        if lists is not None and not listed:
            names = ", ".join(f"{name}.txt" for name in LISTS)
            raise PeersegError(f"{str(lists)!r} holds none of {names}: give a folder of lists")
        with named(str(root)):
            self._split, drawn = divide(self.ids, self._masks, listed, val=val, seed=seed)
        self._table, found = self._find_classes(folder / "classes.yaml")
        self.label_space = self._table.space
        self.notes = (*found, *drawn)

    def image(self, id: str) -> Image:
        """Read one image as stored; see ``SegmentationDataset.image``."""
        return read_image(self._images[id])

    def mask(self, id: str) -> Mask | None:
        """Read one mask as class indices, or None; see ``SegmentationDataset.mask``."""
        path = self._masks.get(id)
        return None if path is None else self._table.translate(read_stored_mask(path), path)

    def size(self, id: str) -> tuple[int, int]:
        """The image's size, from its header."""
        return image_size(self._images[id])

    def file(self, id: str) -> str:
        """The image's path."""
        return str(self._images[id])

    def split(self) -> Split:
        """The split of the lists, or the one drawn for lack of them."""
        return self._split

    def _find_classes(self, declared: Path) -> tuple[ClassTable, list[str]]:
        if declared.exists():
            return read_class_table(declared), []
        # The masks of unlabeled images are never read, not even for this.
        table = find_class_table(self._masks[id] for id in (*self._split.labeled, *self._split.val))
        return table, [f"no classes.yaml: found {len(table.space)} classes in the masks and named them by number"]
