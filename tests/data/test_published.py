"""Published splits: the rule, the hashes, and who may be called published."""

import hashlib
import re
from pathlib import Path

import pytest

from peerseg.data import cityscapes, voc
from peerseg.data.published import Published, published_split, read_ids
from peerseg.errors import PeersegError

TRAIN = [f"2007_{k:06d}" for k in range(0, 40, 3)]
VAL = ["2007_000100", "2007_000200"]


def _hash(lines: list[str]) -> str:
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).hexdigest()[:16]


def _known(line: str = "{id}", train: int = len(TRAIN)) -> Published:
    labeled, rest = TRAIN[::4], [id for k, id in enumerate(TRAIN) if k % 4]
    written = [[line.replace("{id}", id) for id in ids] for ids in (labeled, rest)]
    hashes = {4: (_hash(written[0]), _hash(written[1])), 2: ("0" * 16, "0" * 16)}
    return Published("Constructed", train, len(VAL), line, hashes, "sort")


@pytest.mark.parametrize("line", ["{id}", "/images/{id}.png\t/masks/{id}.png"])
def test_every_rth_image_of_the_full_list_is_the_published_split(line: str) -> None:
    known = _known(line)
    split, note = published_split(known, TRAIN, VAL, 4, None)
    assert split.labeled == tuple(TRAIN[0::4])
    assert sorted((*split.labeled, *split.unlabeled)) == TRAIN
    assert split.unlabeled[:4] == (TRAIN[1], TRAIN[2], TRAIN[3], TRAIN[5])
    assert split.val == tuple(VAL)
    assert note.startswith("this is the published 1/4 split of Constructed (labeled ")
    assert known.hashes[4][0] in note


@pytest.mark.parametrize(
    ("train", "ratio", "count", "words"),
    [
        (TRAIN[::-1], 4, len(TRAIN), r"the lists hash to \w{16} and \w{16}, not \w{16} and \w{16}; sort$"),
        (TRAIN, 2, len(TRAIN), r"the lists hash to \w{16} and \w{16}, not 0{16} and 0{16}; sort$"),
        (TRAIN[:-1], 4, len(TRAIN), r"it has 13 training images, and 14 were published$"),
        (TRAIN, 3, len(TRAIN), r"published are 1/4, 1/2$"),
    ],
)
def test_nothing_else_is_called_published(train: list[str], ratio: int, count: int, words: str) -> None:
    split, note = published_split(_known(train=count), train, VAL, ratio, None)
    assert split.labeled == tuple(train[::ratio])
    assert note.startswith("this is not a published split of Constructed: ")
    assert "this is the published" not in note
    assert re.search(words, note), note


def test_other_val_images_are_no_published_comparison(tmp_path: Path) -> None:
    (tmp_path / "val.txt").write_text(VAL[0])
    _, note = published_split(_known(), TRAIN, VAL, 4, tmp_path)
    assert note.startswith(
        "this is not a published split of Constructed: its training lists are, but it judges by 1 val"
    )


def test_lists_of_another_published_ratio_are_refused(tmp_path: Path) -> None:
    (tmp_path / "labeled.txt").write_text("\n".join(TRAIN[::4]))
    with pytest.raises(
        PeersegError, match=r"data.ratio is 2, but the lists are the published ones of 1/4: set --data.r"
    ):
        published_split(_known(), TRAIN, VAL, 2, tmp_path)


def test_a_train_list_gives_the_order(tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("".join(f"/images/train/{id}.png\t/segmentation/{id}_gt.png\n" for id in TRAIN))
    split, note = published_split(_known(), TRAIN[::-1], VAL, 4, tmp_path)
    assert split.labeled == tuple(TRAIN[::4])
    assert note.startswith("this is the published 1/4 split")


def test_lists_replace_the_rule(tmp_path: Path) -> None:
    (tmp_path / "labeled.txt").write_text("\n".join(TRAIN[:3]))
    split, note = published_split(_known(), TRAIN, VAL, 4, tmp_path)
    assert split.labeled == tuple(TRAIN[:3])
    assert split.unlabeled == tuple(TRAIN[3:])
    assert "not a published split" in note
    (tmp_path / "unlabeled.txt").write_text("\n".join(TRAIN[5:7]))
    (tmp_path / "val.txt").write_text(TRAIN[9])
    split, _ = published_split(_known(), TRAIN, VAL, 4, tmp_path)
    assert (split.unlabeled, split.val) == (tuple(TRAIN[5:7]), (TRAIN[9],))


def test_lists_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"holds none of train.txt, val.txt, labeled.txt, unlabeled.txt"):
        published_split(_known(), TRAIN, VAL, 4, tmp_path)
    (tmp_path / "labeled.txt").write_text("2007_999999\n")
    with pytest.raises(PeersegError, match=r"labeled.txt' names '2007_999999', which is no image of the data set"):
        published_split(_known(), TRAIN, VAL, 4, tmp_path)
    (tmp_path / "labeled.txt").write_text(f"{VAL[0]}\n")
    with pytest.raises(PeersegError, match="is in the labeled and in the val list"):
        published_split(_known(), TRAIN, VAL, 4, tmp_path)
    with pytest.raises(PeersegError, match=r"none.txt' does not exist, expected a list of ids"):
        read_ids(tmp_path / "none.txt")


@pytest.mark.parametrize("ratio", [0, -2])
def test_a_ratio_that_labels_nothing_is_refused(ratio: int) -> None:
    with pytest.raises(PeersegError, match=rf"data\.ratio is {ratio}, expected a number at least 1"):
        published_split(_known(), TRAIN, VAL, ratio, None)


def test_ids_are_read_from_any_published_kind_of_line(tmp_path: Path) -> None:
    lines = {
        "2007_000032": "2007_000032",
        "2007_000033": "/JPEGImages/2007_000033.jpg /SegmentationClassAug/2007_000033.png",
        "jena_000078_000019": "/images/train/jena_000078_000019.png\t/segmentation/train/jena_000078_000019_gtFine.png",
        "ulm_000001_000019": "leftImg8bit/train/ulm/ulm_000001_000019_leftImg8bit.png gtFine/x.png",
    }
    (tmp_path / "list.txt").write_text("\n".join(lines.values()))
    assert read_ids(tmp_path / "list.txt") == list(lines)


@pytest.mark.parametrize(
    ("known", "counts"),
    [
        (voc.PUBLISHED, {16: (662, 9920), 8: (1323, 9259), 4: (2646, 7936), 2: (5291, 5291)}),
        (cityscapes.PUBLISHED, {16: (186, 2789), 8: (372, 2603), 4: (744, 2231), 2: (1488, 1487)}),
    ],
)
def test_splits_of_full_lists_are_as_large_as_published(known: Published, counts: dict[int, tuple[int, int]]) -> None:
    train = [f"{k:06d}" for k in range(known.train)]
    assert set(known.hashes) == set(counts)
    before: set[str] | None = None
    for ratio in sorted(counts, reverse=True):
        split, note = published_split(known, train, ["val"], ratio, None)
        assert (len(split.labeled), len(split.unlabeled)) == counts[ratio]
        assert before is None or before < set(split.labeled), "labeled lists are nested"
        before = set(split.labeled)
        assert "the lists hash to" in note, "made-up ids are not the published ones"
