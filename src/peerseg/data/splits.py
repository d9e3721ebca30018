"""Which images are labeled, unlabeled and val: rules and seeded draws, and the checks that keep them apart."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from peerseg.data.dataset import Split
from peerseg.data.randomness import generator
from peerseg.errors import PeersegError
from peerseg.runs import disk_errors, write_text

Groups = Sequence[Sequence[str]]


def group(ids: Sequence[str], pattern: str | None) -> Groups:
    """Ids that belong together: frames of one clip, tiles of one scene, slices of one patient.

    Args:
        ids: In order.
        pattern: A regular expression; its first group, or the whole match, names the group. None: every id alone.

    Returns:
        The groups, in the order of their first id.
    """
    if pattern is None:
        return [[id] for id in ids]
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise PeersegError(f"--group-by {pattern!r} is no regular expression: {error}") from error
    groups: dict[str, list[str]] = {}
    for id in ids:
        match = compiled.search(id)
        name = match and match.group(1 if compiled.groups else 0)
        if name is None:
            raise PeersegError(f"--group-by {pattern!r} does not match the id {id!r}: every id needs a group")
        groups.setdefault(name, []).append(id)
    return list(groups.values())


def every(groups: Groups, ratio: int) -> tuple[list[str], list[str]]:
    """Every R-th group is labeled: the rule that made the published splits.

    Args:
        groups: In order.
        ratio: R; groups 0, R, 2R ... are labeled.

    Returns:
        Labeled ids and the rest, both in order.
    """
    if ratio < 1:
        raise PeersegError(f"every {ratio!r}-th image was asked for, expected 1 or more")
    chosen = [id for place, members in enumerate(groups) if place % ratio == 0 for id in members]
    rest = [id for place, members in enumerate(groups) if place % ratio for id in members]
    return chosen, rest


def draw(
    groups: Groups, count: int, seed: int, classes: Mapping[str, frozenset[int]] | None = None
) -> tuple[list[str], list[str]]:
    """Draw whole groups at random until enough images are chosen.

    Args:
        groups: In order.
        count: At least this many images are chosen.
        seed: Same seed, same draw; a larger count contains a smaller one's.
        classes: Id -> the classes of its mask. Given: classes not yet covered come first, the rarest of them first.

    Returns:
        Chosen ids and the rest, both in the order of ``groups``.
    """
    total = sum(len(members) for members in groups)
    if not 0 < count <= total:
        raise PeersegError(f"{count} images were asked for, expected 1 to {total}")
    order = [int(place) for place in generator(seed, "split").permutation(len(groups))]
    if classes is not None:
        order = _covering_first(groups, order, classes)
    reached = np.cumsum([len(groups[place]) for place in order])
    chosen = set(order[: int(np.searchsorted(reached, count)) + 1])
    return (
        [id for place, members in enumerate(groups) if place in chosen for id in members],
        [id for place, members in enumerate(groups) if place not in chosen for id in members],
    )


def _covering_first(groups: Groups, order: Sequence[int], classes: Mapping[str, frozenset[int]]) -> list[int]:
    holds = [frozenset[int]().union(*(classes[id] for id in members)) for members in groups]
    frequency = {k: sum(k in held for held in holds) for k in frozenset[int]().union(*holds)}
    first: list[int] = []
    covered: set[int] = set()
    for k in sorted(frequency, key=lambda k: (frequency[k], k)):
        if k not in covered:
            place = next(place for place in order if k in holds[place])
            first.append(place)
            covered |= holds[place]
    return first + [place for place in order if place not in first]


def check_disjoint(split: Split) -> None:
    """Refuse a split in which one image plays two parts.

    Args:
        split: The split to check.
    """
    parts = {"labeled": split.labeled, "unlabeled": split.unlabeled, "val": split.val}
    for one, other in (("labeled", "unlabeled"), ("labeled", "val"), ("unlabeled", "val")):
        small, large = sorted((parts[one], parts[other]), key=len)
        seen = set(small)
        both = next((id for id in large if id in seen), None)
        if both is not None:
            raise PeersegError(f"{both!r} is in the {one} and in the {other} list: leave it in one of them")
    for name in ("labeled", "val"):  # never a set of the whole pool
        twice = len(parts[name]) - len(set(parts[name]))
        if twice:
            raise PeersegError(f"the {name} list names {twice} ids twice: name every id once")


def digest(split: Split) -> str:
    """A short hash that identifies a split wherever results are compared.

    Args:
        split: The split.

    Returns:
        The first 16 hexadecimal digits of a SHA-256.
    """
    hashed = hashlib.sha256()
    for ids in (split.labeled, split.unlabeled, split.val):
        for id in ids:
            hashed.update(id.encode() + b"\n")
        hashed.update(b"\0")
    return hashed.hexdigest()[:16]


def read_list(path: Path) -> list[str]:
    """Read a list of ids: one a line, empty lines and # comments left out.

    Args:
        path: The list.

    Returns:
        The ids as written.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise PeersegError(f"{str(path)!r} is no UTF-8 text ({error.reason}): save the list as UTF-8") from error
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def write_lists(folder: Path, split: Split) -> None:
    """Write a split as ``labeled.txt``, ``unlabeled.txt`` and ``val.txt``.

    Args:
        folder: Where; made if missing.
        split: The split.
    """
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, ids in (("labeled", split.labeled), ("unlabeled", split.unlabeled), ("val", split.val)):
            write_text(folder / f"{name}.txt", "".join(f"{id}\n" for id in ids))


def share(count: int, part: float) -> int:
    """How many images a share is: at least one, and never all.

    Args:
        count: Of how many.
        part: Between 0 and 1.

    Returns:
        The number.
    """
    return int(np.clip(round(count * part), 1, max(count - 1, 1)))
