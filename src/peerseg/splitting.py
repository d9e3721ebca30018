"""``peerseg split``: a folder's masked images divided into labeled, unlabeled and val lists."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from peerseg.data.dataset import Split
from peerseg.data.folder import ImageFolder
from peerseg.data.labels import UNLABELED
from peerseg.data.splits import check_disjoint, digest, draw, every, group, share, write_lists
from peerseg.errors import PeersegError
from peerseg.experiment.running import watch


def split_folder(
    root: Path,
    out: Path,
    *,
    every_rth: int | None = None,
    labels: int | None = None,
    cover: bool = False,
    val: float = 0.2,
    group_by: str | None = None,
    seed: int = 0,
) -> list[str]:
    """Write ``labeled.txt``, ``unlabeled.txt`` and ``val.txt``.

    Args:
        root: The image folder.
        out: Where the lists go.
        every_rth: Label every R-th image or group.
        labels: Label this many, drawn at random.
        cover: With ``labels``: draw until every class is there first; this reads the masks.
        val: Share drawn for val where the folder has no val.txt.
        group_by: A regular expression; what shares its match stays together.
        seed: Of the draws.

    Returns:
        What was done, a sentence a line.
    """
    _check_choice(every_rth, labels, cover)
    _refuse_existing(root, out)
    folder = ImageFolder(root, val=val, seed=seed)
    judges, masked = _val_and_rest(folder, root, val, group_by, seed)
    lines = (
        ["the masks of all candidates are read to draw every class: say so when you compare results"] if cover else []
    )
    groups = group(masked, group_by)
    if every_rth is not None:
        labeled, rest = every(groups, every_rth)
    else:
        labeled, rest = draw(groups, labels or 0, seed, _classes(folder, masked) if cover else None)
    others, left_out = _apart(folder.split().unlabeled, judges, group_by)
    if left_out:
        lines.append(f"left out {left_out} images without masks that belong to groups of val images")
    unlabeled = [*rest, *others]
    split = Split(labeled, unlabeled, judges)
    check_disjoint(split)
    write_lists(out, split)
    counts = f"{len(labeled)} labeled, {len(unlabeled)} unlabeled, {len(judges)} val"
    lines.append(f"wrote {counts} to {out} (split {digest(split)})")
    if out != root:
        lines.append(f"train on it with --data.root {root} --data.lists {out}")
    return lines


def _check_choice(every_rth: int | None, labels: int | None, cover: bool) -> None:
    if (every_rth is None) == (labels is None):
        raise PeersegError("give either --every R (every R-th image) or --labels N (N images at random)")
    if cover and labels is None:
        raise PeersegError("--cover draws classes first, which needs --labels N")


def _refuse_existing(root: Path, out: Path) -> None:
    written = ["labeled.txt", "unlabeled.txt"] + ([] if out.resolve() == root.resolve() else ["val.txt"])
    for path in (out / name for name in written):
        if path.exists():
            raise PeersegError(f"{str(path)!r} exists already: remove it, or choose another --out")


def _val_and_rest(
    folder: ImageFolder, root: Path, val: float, group_by: str | None, seed: int
) -> tuple[list[str], list[str]]:
    known = folder.split()
    listed = {*known.labeled, *known.val}
    masked = [id for id in folder.ids if id in listed]
    if (root / "val.txt").exists():
        judges = list(known.val)
        judged = set(judges)
        rest = [id for id in masked if id not in judged]
        _refuse_shared_groups(judges, rest, group_by)
        return judges, rest
    groups = group(masked, group_by)
    if len(groups) < 2:
        raise PeersegError(
            f"--group-by {group_by!r} puts all {len(masked)} images into one group, expected at least two"
        )
    judges, rest = draw(groups, share(len(masked), val), seed)
    if not rest:
        raise PeersegError(f"--val {val} of whole groups takes all {len(masked)} images: lower it, or write a val.txt")
    return judges, rest


def _refuse_shared_groups(judges: Sequence[str], rest: Sequence[str], group_by: str | None) -> None:
    chosen = set(judges)
    for members in group([*judges, *rest], group_by):
        inside = [id for id in members if id in chosen]
        if inside and len(inside) < len(members):
            outside = next(id for id in members if id not in chosen)
            raise PeersegError(
                f"val.txt holds {inside[0]!r} but not {outside!r} of the same group: list whole groups, or remove val.txt"
            )


def _apart(ids: Sequence[str], judges: Sequence[str], group_by: str | None) -> tuple[list[str], int]:
    """The ids that share no group with a val image, and how many do."""
    judged = set(judges)
    mixed = [members for members in group([*judges, *ids], group_by) if judged.intersection(members)]
    taken = {id for members in mixed for id in members}
    kept = [id for id in ids if id not in taken]
    return kept, len(ids) - len(kept)


def _classes(folder: ImageFolder, ids: Sequence[str]) -> dict[str, frozenset[int]]:
    found = {}
    for id in watch(ids, "reading masks"):
        mask = folder.mask(id)
        assert mask is not None, "only ids with masks are asked for"
        found[id] = frozenset(int(value) for value in np.unique(mask) if value < UNLABELED)
    return found
