"""The splits that results are published on: every R-th image of a full list, told from others by their hashes."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from peerseg.data.dataset import Split
from peerseg.data.splits import check_disjoint, every, read_list
from peerseg.errors import PeersegError, check_between

LISTS = ("train", "val", "labeled", "unlabeled")


@dataclass(frozen=True)
class Published:
    """What is known of the published lists of a data set.

    Args:
        name: Of the data set.
        train: How many training images there are.
        val: How many val images.
        line: How a list names an image; "{id}" stands for it.
        hashes: R -> the first 16 hexadecimal digits of the SHA-256 of the labeled and of the unlabeled list.
        remedy: What to do where the images are the published ones and their order is not.
    """

    name: str
    train: int
    val: int
    line: str
    hashes: Mapping[int, tuple[str, str]]
    remedy: str

    def hash(self, ids: Sequence[str]) -> str:
        """The hash of a list as the authors would have written it.

        Args:
            ids: In order.

        Returns:
            16 hexadecimal digits.
        """
        return hashlib.sha256("".join(self.line.format(id=id) + "\n" for id in ids).encode()).hexdigest()[:16]

    def judge(self, split: Split, ratio: int) -> str:
        """Say whether a split is the published one.

        Args:
            split: The split.
            ratio: R.

        Returns:
            A sentence; only equal hashes are called published.
        """
        found = len(split.labeled) + len(split.unlabeled)
        hashes = self.hash(split.labeled), self.hash(split.unlabeled)
        known = next((r for r, published in self.hashes.items() if published == hashes), None)
        if known not in (None, ratio):
            raise PeersegError(
                f"data.ratio is {ratio}, but the lists are the published ones of 1/{known}: set --data.ratio {known}, for "
                "its steps too"
            )
        what = f"this is not a published split of {self.name}"
        if known and len(split.val) != self.val:
            return f"{what}: its training lists are, but it judges by {len(split.val)} val images, and {self.val} were published"
        if known:
            return f"this is the published 1/{ratio} split of {self.name} (labeled {hashes[0]}, unlabeled {hashes[1]})"
        if ratio not in self.hashes:
            return f"{what}: published are {', '.join(f'1/{known}' for known in sorted(self.hashes, reverse=True))}"
        if found != self.train:
            return f"{what}: it has {found} training images, and {self.train} were published"
        return (
            f"{what}: the lists hash to {' and '.join(hashes)}, not {' and '.join(self.hashes[ratio])}; {self.remedy}"
        )


def published_split(
    known: Published, train: Sequence[str], val: Sequence[str], ratio: int, lists: Path | None
) -> tuple[Split, str]:
    """Label every R-th training image, or what the user's lists say.

    Args:
        known: The published lists.
        train: Every training image, in order.
        val: Every val image.
        ratio: R.
        lists: A folder with some of ``train.txt`` (another order), ``val.txt``, ``labeled.txt`` and ``unlabeled.txt``.

    Returns:
        The split, and whether it is the published one.
    """
    check_between("data.ratio", ratio, 1)
    own = {} if lists is None else _read_lists(lists, {*train, *val})
    order, judges = own.get("train", train), own.get("val", val)
    labeled, unlabeled = every([[id] for id in order], ratio)
    if "labeled" in own:
        chosen = set(own["labeled"])
        labeled, unlabeled = own["labeled"], [id for id in order if id not in chosen]
    split = Split(tuple(labeled), tuple(own.get("unlabeled", unlabeled)), tuple(judges))
    check_disjoint(split)
    return split, known.judge(split, ratio)


def _read_lists(folder: Path, known: set[str]) -> dict[str, list[str]]:
    found = {name: folder / f"{name}.txt" for name in LISTS if (folder / f"{name}.txt").is_file()}
    if not found:
        raise PeersegError(
            f"{str(folder)!r} holds none of {', '.join(f'{name}.txt' for name in LISTS)}: give a folder of lists"
        )
    lists = {name: read_ids(path) for name, path in found.items()}
    for name, ids in lists.items():
        strange = next((id for id in ids if id not in known), None)
        if strange is not None:
            raise PeersegError(
                f"{str(found[name])!r} names {strange!r}, which is no image of the data set: remove the line"
            )
    return lists


def read_ids(path: Path) -> list[str]:
    """Read a list of ids, or of image files and perhaps their masks.

    Args:
        path: The list.

    Returns:
        The ids, without folders and endings.
    """
    if not path.is_file():
        raise PeersegError(f"{str(path)!r} does not exist, expected a list of ids, one a line")
    return [Path(line.split()[0]).stem.removesuffix("_leftImg8bit") for line in read_list(path)]
