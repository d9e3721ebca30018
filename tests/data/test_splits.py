"""Splits: rules, seeded draws, groups that stay together, and the checks that keep the parts apart."""

import random
from itertools import pairwise
from pathlib import Path

import pytest

from peerseg.data.dataset import Split
from peerseg.data.splits import check_disjoint, digest, draw, every, group, read_list, share, write_lists
from peerseg.errors import PeersegError

IDS = [f"clip{k // 3}_{k % 3}" for k in range(12)]
ALONE = [[id] for id in IDS]


def test_without_a_pattern_every_id_stands_alone() -> None:
    assert group(IDS, None) == ALONE


@pytest.mark.parametrize("pattern", [r"(clip\d+)_\d", r"clip\d+"])
def test_a_pattern_keeps_clips_together(pattern: str) -> None:
    shuffled = random.Random(0).sample(IDS, len(IDS))
    groups = group(shuffled, pattern)
    assert [members[0] for members in groups] == [
        id for k, id in enumerate(shuffled) if id[:5] not in "".join(shuffled[:k])
    ]
    assert all(len(members) == 3 and len({id[:5] for id in members}) == 1 for members in groups)


def test_a_broken_pattern_is_named() -> None:
    with pytest.raises(PeersegError, match=r"--group-by '\(clip' is no regular expression: .*unterminated"):
        group(IDS, "(clip")


def test_an_id_without_a_group_is_named() -> None:
    with pytest.raises(PeersegError, match=r"'clip1\.\*' does not match the id 'clip0_0'"):
        group(IDS, "clip1.*")


def test_a_group_that_takes_no_part_in_the_match_is_refused() -> None:
    with pytest.raises(PeersegError, match="does not match the id 'clip0_0'"):
        group(IDS, r"(frame\d)?clip")


def test_every_rth_is_labeled() -> None:
    chosen, rest = every(ALONE, 4)
    assert chosen == [IDS[0], IDS[4], IDS[8]]
    assert rest == [id for id in IDS if id not in chosen]


def test_every_rth_group_is_labeled_whole() -> None:
    chosen, rest = every(group(IDS, r"clip\d+"), 2)
    assert chosen == IDS[0:3] + IDS[6:9]
    assert rest == IDS[3:6] + IDS[9:12]


def test_every_first_is_all() -> None:
    assert every(ALONE, 1) == (IDS, [])


@pytest.mark.parametrize("ratio", [0, -2])
def test_every_zeroth_is_refused(ratio: int) -> None:
    with pytest.raises(PeersegError, match=f"every {ratio}-th image was asked for, expected 1 or more"):
        every(ALONE, ratio)


def test_a_draw_is_seeded_and_keeps_the_order() -> None:
    chosen, rest = draw(ALONE, 5, seed=1)
    assert len(chosen) == 5
    assert sorted(chosen + rest) == sorted(IDS)
    assert chosen == sorted(chosen, key=IDS.index)
    assert rest == sorted(rest, key=IDS.index)
    assert draw(ALONE, 5, seed=1) == (chosen, rest)
    assert len({tuple(draw(ALONE, 5, seed)[0]) for seed in range(10)}) > 5


@pytest.mark.parametrize("cover", [False, True])
def test_a_larger_draw_contains_a_smaller_one(cover: bool) -> None:
    classes = {id: frozenset({k % 4}) for k, id in enumerate(IDS)} if cover else None
    draws = [set(draw(ALONE, count, 3, classes)[0]) for count in range(1, 13)]
    assert all(small < large for small, large in pairwise(draws))


def test_groups_are_drawn_whole() -> None:
    chosen, _ = draw(group(IDS, r"clip\d+"), 4, seed=0)
    assert len(chosen) == 6
    assert len({id[:5] for id in chosen}) == 2


@pytest.mark.parametrize("count", [0, -1, 13])
def test_an_impossible_count_is_refused(count: int) -> None:
    with pytest.raises(PeersegError, match=f"{count} images were asked for, expected 1 to 12"):
        draw(ALONE, count, 0)


@pytest.mark.parametrize("seed", range(5))
def test_covering_finds_rare_classes_first(seed: int) -> None:
    classes = {id: frozenset({0}) for id in IDS} | {"clip1_1": frozenset({0, 2}), "clip3_2": frozenset({0, 1})}
    chosen, _ = draw(ALONE, 2, seed, classes)
    assert chosen == ["clip1_1", "clip3_2"]
    four, _ = draw(ALONE, 4, seed, classes)
    assert set(chosen) < set(four)


def test_without_covering_a_rare_class_is_missed_by_some_seed() -> None:
    assert not all("clip1_1" in draw(ALONE, 2, seed)[0] for seed in range(5))


@pytest.mark.parametrize(
    ("split", "parts"),
    [
        (Split(["a", "b"], ["b", "c"], ["v"]), "labeled and in the unlabeled"),
        (Split(["a", "b"], ["c"], ["b"]), "labeled and in the val"),
        (Split(["a"], ["c", "b"], ["b"]), "unlabeled and in the val"),
    ],
)
def test_overlaps_are_refused(split: Split, parts: str) -> None:
    with pytest.raises(PeersegError, match=f"'b' is in the {parts} list: leave it in one of them"):
        check_disjoint(split)


@pytest.mark.parametrize(
    ("split", "part"), [(Split(["a", "a"], ["b"], ["c"]), "labeled"), (Split(["a"], ["b"], ["c", "d", "c"]), "val")]
)
def test_repeated_ids_are_refused(split: Split, part: str) -> None:
    with pytest.raises(PeersegError, match=f"the {part} list names 1 ids twice: name every id once"):
        check_disjoint(split)


def test_digest_tells_splits_apart() -> None:
    splits = [
        Split(["a"], ["b"], ["c"]),
        Split(["b"], ["a"], ["c"]),
        Split(["a", "b"], [], ["c"]),
        Split([], ["a", "b"], ["c"]),
        Split(["ab"], [], ["c"]),
    ]
    assert len({digest(split) for split in splits}) == len(splits)
    assert digest(splits[0]) == digest(Split(("a",), ("b",), ("c",)))
    assert len(digest(splits[0])) == 16


def test_lists_are_read_back_as_written(tmp_path: Path) -> None:
    write_lists(tmp_path / "new" / "lists", Split(["a", "deep/b"], [], ["c"]))
    assert [read_list(tmp_path / "new" / "lists" / f"{name}.txt") for name in ("labeled", "unlabeled", "val")] == [
        ["a", "deep/b"],
        [],
        ["c"],
    ]


def test_lists_that_cannot_be_written_are_named(tmp_path: Path) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(PeersegError, match=r"cannot write '.*taken'"):
        write_lists(tmp_path / "taken", Split(["a"], [], ["b"]))


def test_empty_lines_and_comments_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "val.txt").write_bytes(b"# of May\r\n a.png \r\n\r\nb\n")
    assert read_list(tmp_path / "val.txt") == ["a.png", "b"]


@pytest.mark.parametrize(("count", "part", "expected"), [(10, 0.2, 2), (2, 0.2, 1), (2, 0.99, 1), (100, 0.5, 50)])
def test_a_share_is_at_least_one_and_never_all(count: int, part: float, expected: int) -> None:
    assert share(count, part) == expected
