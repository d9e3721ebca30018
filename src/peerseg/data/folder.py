"""Your own pictures: ``images/``, ``masks/`` with the same names, and optionally ``unlabeled/`` and lists."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from peerseg.data.classes import ClassTable, find_class_table, read_class_table
from peerseg.data.dataset import Image, SegmentationDataset, Split
from peerseg.data.files import (
    IMAGE_SUFFIXES,
    LOSSY_SUFFIXES,
    MASK_SUFFIXES,
    find_files,
    image_size,
    read_image,
    read_stored_mask,
)
from peerseg.data.labels import Mask
from peerseg.data.splits import check_disjoint, draw, group, read_list, share
from peerseg.errors import PeersegError, nearest

TREE = "ROOT/images/*.jpg and ROOT/masks/*.png with the same names, ROOT/unlabeled/*.jpg if you like"
LISTS = ("train", "val", "labeled", "unlabeled")


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
        self._root = Path(root)
        for needed in (self._root, self._root / "images"):
            if not needed.is_dir():
                raise PeersegError(f"{str(needed)!r} is no folder, expected {TREE}")
        if not 0 < val < 1:
            raise PeersegError(f"data.val is {val!r}, expected a share between 0 and 1, such as 0.2")
        self._lists = Path(lists) if lists is not None else self._root
        if lists is not None and not any((self._lists / f"{name}.txt").exists() for name in LISTS):
            raise PeersegError(
                f"{str(lists)!r} holds none of {', '.join(f'{name}.txt' for name in LISTS)}: give a folder of lists"
            )
        self._val, self._seed = val, seed
        self._images = find_files(self._root / "images", IMAGE_SUFFIXES)
        for stem, path in find_files(self._root / "unlabeled", IMAGE_SUFFIXES).items():
            if f"unlabeled/{stem}" in self._images:
                clash = str(self._images[f"unlabeled/{stem}"])
                raise PeersegError(
                    f"{clash!r} and {str(path)!r} have the same id 'unlabeled/{stem}': rename one of them"
                )
            self._images[f"unlabeled/{stem}"] = path
        if not self._images:
            raise PeersegError(
                f"{str(self._root / 'images')!r} holds no image of {', '.join(IMAGE_SUFFIXES)}: expected {TREE}"
            )
        self._masks = find_files(self._root / "masks", MASK_SUFFIXES)
        lossy = next(iter(find_files(self._root / "masks", LOSSY_SUFFIXES).values()), None)
        if lossy is not None:
            raise PeersegError(f"{str(lossy)!r} is no mask: lossy formats change class values, save masks as PNG")
        orphan = next((id for id in self._masks if id not in self._images), None)
        if orphan is not None:
            raise PeersegError(
                f"{str(self._masks[orphan])!r} has no image of the same name in images/; {nearest(orphan, self._images)}"
                if len(self._images) < 20
                else f"{str(self._masks[orphan])!r} has no image of the same name in images/: rename or remove it"
            )
        self.ids = tuple(self._images)
        self._split, drawn = self._find_split()
        self._table, found = self._find_classes()
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

    def _find_classes(self) -> tuple[ClassTable, list[str]]:
        declared = self._root / "classes.yaml"
        if declared.exists():
            return read_class_table(declared), []
        table = find_class_table(self._masks[id] for id in (*self._split.labeled, *self._split.val))
        return table, [f"no classes.yaml: found {len(table.space)} classes in the masks and named them by number"]

    def _find_split(self) -> tuple[Split, list[str]]:
        lists = {name: self._read(name) for name in LISTS if (self._lists / f"{name}.txt").exists()}
        notes = []
        train, open_ = lists.get("train", self.ids), set(lists.get("unlabeled", ()))
        labeled = lists.get("labeled", [id for id in train if id in self._masks and id not in open_])
        if "val" in lists:
            val = lists["val"]
        elif len(labeled) < 2:
            raise PeersegError(
                f"{len(labeled)} labeled images were found below {str(self._root)!r}, expected at least 2 (one of them "
                f"judges) or a val.txt: {TREE}"
            )
        else:
            count = share(len(labeled), self._val)
            val, labeled = draw(group(labeled, None), count, self._seed)
            notes.append(
                f"no val.txt: drew {count} of the {count + len(labeled)} labeled images to judge by (seed {self._seed})"
            )
        judges = set(val)
        if "labeled" not in lists:
            labeled = [id for id in labeled if id not in judges]
        known = judges.union(labeled)
        rest = [id for id in train if id not in known and ("labeled" in lists or id not in self._masks)]
        extra = [id for id in self.ids if "train" in lists and id.startswith("unlabeled/") and id not in known]
        split = Split(tuple(labeled), tuple(lists.get("unlabeled", dict.fromkeys([*rest, *extra]))), tuple(val))
        check_disjoint(split)
        self._check_masks(split)
        return split, notes

    def _check_masks(self, split: Split) -> None:
        for name, ids in (("labeled", split.labeled), ("val", split.val)):
            if not ids:
                raise PeersegError(
                    f"the {name} list of {str(self._root)!r} is empty, expected at least one image with a mask"
                )
            bare = next((id for id in ids if id not in self._masks), None)
            if bare is not None:
                raise PeersegError(
                    f"{bare!r} is in the {name} list but has no mask in masks/: add the mask or remove the id"
                )

    def _read(self, name: str) -> Sequence[str]:
        path = self._lists / f"{name}.txt"
        ids = [_without_suffix(line) for line in read_list(path)]
        strange = next((id for id in ids if id not in self._images), None)
        if strange is not None:
            raise PeersegError(
                f"{str(path)!r} names {strange!r}, expected an image below images/ or unlabeled/ by its path there"
            )
        twice = next((id for id, count in Counter(ids).items() if count > 1), None)
        if twice is not None:
            raise PeersegError(f"{str(path)!r} names {twice!r} twice: name every image once")
        return ids


def _without_suffix(line: str) -> str:
    path = Path(line.removeprefix("images/"))
    return path.with_suffix("").as_posix() if path.suffix.lower() in IMAGE_SUFFIXES else path.as_posix()
