"""How an image folder is laid out: which files it holds, and which part each image plays."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from peerseg.data.dataset import Split
from peerseg.data.files import IMAGE_SUFFIXES, LOSSY_SUFFIXES, MASK_SUFFIXES, find_files
from peerseg.data.splits import check_disjoint, draw, group, read_list, share
from peerseg.errors import PeersegError, nearest

TREE = "ROOT/images/*.jpg and ROOT/masks/*.png with the same names, ROOT/unlabeled/*.jpg if you like"
LISTS = ("train", "val", "labeled", "unlabeled")
FEW = 20  # images among which a hint at the nearest name is worth its length


def find_images(root: Path) -> dict[str, Path]:
    """Every image of a folder.

    Args:
        root: Holds ``images/`` and optionally ``unlabeled/``.

    Returns:
        Id -> file; the ids of ``unlabeled/`` begin with that word.
    """
    for needed in (root, root / "images"):
        if not needed.is_dir():
            raise PeersegError(f"{str(needed)!r} is no folder, expected {TREE}")
    images = find_files(root / "images", IMAGE_SUFFIXES)
    for stem, path in find_files(root / "unlabeled", IMAGE_SUFFIXES).items():
        id = f"unlabeled/{stem}"
        if id in images:
            raise PeersegError(f"{str(images[id])!r} and {str(path)!r} have the same id {id!r}: rename one of them")
        images[id] = path
    if not images:
        raise PeersegError(f"{str(root / 'images')!r} holds no image of {', '.join(IMAGE_SUFFIXES)}: expected {TREE}")
    return images


def find_masks(root: Path, images: Collection[str]) -> dict[str, Path]:
    """Every mask of a folder; each belongs to an image.

    Args:
        root: Holds ``masks/``.
        images: The ids there are.

    Returns:
        Id -> file.
    """
    for lossy in find_files(root / "masks", LOSSY_SUFFIXES).values():
        raise PeersegError(f"{str(lossy)!r} is no mask: lossy formats change class values, save masks as PNG")
    masks = find_files(root / "masks", MASK_SUFFIXES)
    for id, path in masks.items():
        if id not in images:
            hint = nearest(id, images) if len(images) < FEW else "rename or remove it"
            raise PeersegError(f"{str(path)!r} has no image of the same name in images/; {hint}")
    return masks


def read_lists(folder: Path, images: Collection[str]) -> dict[str, list[str]]:
    """The lists of a folder.

    Args:
        folder: Holds some of ``train.txt``, ``val.txt``, ``labeled.txt`` and ``unlabeled.txt``.
        images: The ids there are.

    Returns:
        Name -> ids, for the lists that exist.
    """
    return {name: _read(folder / f"{name}.txt", images) for name in LISTS if (folder / f"{name}.txt").exists()}


def _read(path: Path, images: Collection[str]) -> list[str]:
    ids = [_without_suffix(line) for line in read_list(path)]
    for id, count in Counter(ids).items():
        if id not in images:
            raise PeersegError(
                f"{str(path)!r} names {id!r}, expected an image below images/ or unlabeled/ by its path there"
            )
        if count > 1:
            raise PeersegError(f"{str(path)!r} names {id!r} twice: name every image once")
    return ids


def _without_suffix(line: str) -> str:
    path = Path(line.removeprefix("images/"))
    return path.with_suffix("").as_posix() if path.suffix.lower() in IMAGE_SUFFIXES else path.as_posix()


def divide(
    ids: Sequence[str], masked: Collection[str], lists: Mapping[str, Sequence[str]], *, val: float, seed: int
) -> tuple[Split, list[str]]:
    """Give each image its part.

    Args:
        ids: Every image.
        masked: Those with a mask.
        lists: What the user listed; what is not listed follows from the masks.
        val: Without a val list, the share of the labeled images that is drawn for it.
        seed: Of that draw.

    Returns:
        The split, and what was decided without being asked.
    """
    notes = []
    train = lists.get("train", ids)
    open_ = set(lists.get("unlabeled", ()))
    labeled = lists.get("labeled", [id for id in train if id in masked and id not in open_])
    judges = lists.get("val")
    if judges is None:
        if len(labeled) < 2:
            raise PeersegError(
                f"{len(labeled)} labeled images were found, expected at least 2 (one of them judges) or a val.txt: {TREE}"
            )
        count = share(len(labeled), val)
        notes.append(f"no val.txt: drew {count} of the {len(labeled)} labeled images to judge by (seed {seed})")
        judges, labeled = draw(group(labeled, None), count, seed)
    elif "labeled" not in lists:
        judged = set(judges)
        labeled = [id for id in labeled if id not in judged]
    known = {*labeled, *judges}
    # Without a labeled list, what has a mask is labeled; with one, the masks of all others are never read.
    rest = [id for id in train if id not in known and ("labeled" in lists or id not in masked)]
    if "train" in lists:
        named = {*known, *train}
        rest += [id for id in ids if id.startswith("unlabeled/") and id not in named]
    split = Split(tuple(labeled), tuple(lists.get("unlabeled", rest)), tuple(judges))
    check_disjoint(split)
    _check_masked(split, masked)
    return split, notes


def _check_masked(split: Split, masked: Collection[str]) -> None:
    for name, ids in (("labeled", split.labeled), ("val", split.val)):
        if not ids:
            raise PeersegError(f"the {name} list is empty, expected at least one image with a mask")
        for id in ids:
            if id not in masked:
                raise PeersegError(
                    f"{id!r} is in the {name} list but has no mask in masks/: add the mask or remove the id"
                )
