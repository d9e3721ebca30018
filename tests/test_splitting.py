"""``peerseg split``: every R-th image or a seeded draw, groups kept together, val apart, and what is refused."""

from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from conftest import write_labels, write_picture
from peerseg.cli import main
from peerseg.data import ImageFolder
from peerseg.data.splits import digest, read_list
from peerseg.errors import PeersegError
from peerseg.splitting import split_folder

BY_CLIP = "^([a-z]+[0-9]+)_"
LISTS = ("labeled", "unlabeled", "val")
WILD = ["wild4_0", "wild4_1"]
FRAMES = [f"clip{clip}_{frame}" for clip in range(4) for frame in range(3)]


@pytest.fixture
def clips(tmp_path: Path) -> Path:
    """Four clips of three frames, all with masks; class 2 in one frame alone; two images without masks."""
    root = tmp_path / "clips"
    for k, name in enumerate(FRAMES):
        write_picture(root / "images" / f"{name}.png", seed=k)
        write_labels(root / "masks" / f"{name}.png", seed=k, classes=3 if name == "clip2_1" else 2)
    for name in WILD:
        write_picture(root / "images" / f"{name}.png", seed=99)
    return root


def lists(folder: Path) -> dict[str, list[str]]:
    return {name: read_list(folder / f"{name}.txt") for name in LISTS}


def clip(id: str) -> str:
    return id.partition("_")[0]


def test_every_rth_of_what_val_leaves(clips: Path) -> None:
    lines = split_folder(clips, clips, every_rth=3, val=0.25)
    found = lists(clips)
    rest = [id for id in FRAMES if id not in found["val"]]

    assert len(found["val"]) == 3
    assert found["labeled"] == rest[::3]
    assert found["unlabeled"] == [id for id in rest if id not in rest[::3]] + WILD
    assert lines == [f"wrote 3 labeled, 8 unlabeled, 3 val to {clips} (split {digest(ImageFolder(clips).split())})"]


def test_a_folder_reads_back_the_split_that_was_written(clips: Path) -> None:
    split_folder(clips, clips, labels=4)
    split = ImageFolder(clips).split()

    assert {name: list(getattr(split, name)) for name in LISTS} == lists(clips)


def test_lists_can_lie_elsewhere_and_the_command_says_how_to_use_them(clips: Path, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "split"
    lines = split_folder(clips, out, labels=4)
    split = ImageFolder(clips, lists=out).split()

    assert lines[-1] == f"train on it with --data.root {clips} --data.lists {out}"
    assert {name: list(getattr(split, name)) for name in LISTS} == lists(out)
    assert not list(clips.glob("*.txt"))


@pytest.mark.parametrize("labels", [1, 4, 9])
def test_draws_are_seeded_and_a_larger_one_holds_the_smaller(clips: Path, tmp_path: Path, labels: int) -> None:
    for name, count, seed in (("one", labels, 0), ("two", labels, 0), ("more", labels + 1, 0), ("other", labels, 1)):
        split_folder(clips, tmp_path / name, labels=count, seed=seed, val=0.1)
    one, two, more, other = (lists(tmp_path / name) for name in ("one", "two", "more", "other"))

    assert one == two
    assert one["val"] == more["val"]
    assert set(one["labeled"]) < set(more["labeled"])
    assert len(one["labeled"]) == labels
    assert one != other


def test_every_image_has_one_part(clips: Path) -> None:
    split_folder(clips, clips, labels=3)
    together = [id for ids in lists(clips).values() for id in ids]

    assert sorted(together) == sorted([*FRAMES, *WILD])


@pytest.mark.parametrize("seed", range(5))
def test_cover_draws_every_class_and_says_that_it_reads_masks(clips: Path, tmp_path: Path, seed: int) -> None:
    (clips / "val.txt").write_text("clip0_0\nclip3_1\n")
    lines = split_folder(clips, tmp_path / "out", labels=2, cover=True, seed=seed)

    assert "clip2_1" in lists(tmp_path / "out")["labeled"]
    assert "the masks of all candidates are read to draw every class" in lines[0]


def test_without_cover_no_class_is_looked_for(clips: Path, tmp_path: Path) -> None:
    (clips / "val.txt").write_text("clip0_0\nclip3_1\n")
    drawn = []
    for seed in range(5):
        lines = split_folder(clips, tmp_path / str(seed), labels=2, seed=seed)
        drawn.append("clip2_1" in lists(tmp_path / str(seed))["labeled"])
        assert not any("masks" in line for line in lines)

    assert not all(drawn)


def test_cover_ignores_what_is_no_class(clips: Path, tmp_path: Path) -> None:
    (clips / "val.txt").write_text("clip0_0\n")
    mask = np.zeros((20, 24), np.uint8)
    mask[0] = 255
    mask[1] = 254
    PIL.Image.fromarray(mask).save(clips / "masks" / "clip1_1.png")
    split_folder(clips, tmp_path / "out", labels=1, cover=True)

    assert lists(tmp_path / "out")["labeled"] == ["clip2_1"]


@pytest.mark.parametrize("choice", [{"every_rth": 2}, {"labels": 4}, {"labels": 4, "cover": True}])
@pytest.mark.parametrize("seed", [0, 1])
def test_groups_stay_together(clips: Path, choice: dict[str, int], seed: int) -> None:
    split_folder(clips, clips, group_by=BY_CLIP, seed=seed, **choice)
    found = lists(clips)
    masked = {name: {clip(id) for id in ids if id in FRAMES} for name, ids in found.items()}

    assert masked["labeled"]
    assert masked["val"]
    assert sum(len(clips_of) for clips_of in masked.values()) == 4, "no clip is in two parts"
    assert len(found["labeled"]) % 3 == 0


def test_bare_images_of_a_val_group_are_left_out_and_it_is_said(clips: Path, tmp_path: Path) -> None:
    for name in ("clip2_8", "clip2_9", "clip3_9"):
        write_picture(clips / "images" / f"{name}.png", seed=7)
    (clips / "val.txt").write_text("".join(f"{id}\n" for id in FRAMES if clip(id) == "clip2"))
    lines = split_folder(clips, tmp_path / "out", labels=3, group_by=BY_CLIP)
    alone = split_folder(clips, tmp_path / "alone", labels=3)
    unlabeled = lists(tmp_path / "out")["unlabeled"]

    assert "left out 2 images without masks that belong to groups of val images" in lines
    assert {"clip3_9", *WILD} <= set(unlabeled)
    assert not {id for id in unlabeled if clip(id) == "clip2"}
    assert not any("left out" in line for line in alone)
    assert {"clip2_8", "clip2_9"} <= set(lists(tmp_path / "alone")["unlabeled"])


def test_a_val_list_is_kept(clips: Path, tmp_path: Path) -> None:
    (clips / "val.txt").write_text("clip1_2\nclip0_0\n")
    split_folder(clips, tmp_path / "out", every_rth=2)
    found = lists(tmp_path / "out")

    assert found["val"] == ["clip1_2", "clip0_0"]
    assert found["labeled"] == [id for id in FRAMES if id not in found["val"]][::2]


@pytest.mark.parametrize(
    ("choice", "sentence"),
    [
        ({}, r"give either --every R \(every R-th image\) or --labels N"),
        ({"every_rth": 2, "labels": 3}, r"give either --every R \(every R-th image\) or --labels N"),
        ({"every_rth": 2, "cover": True}, r"--cover draws classes first, which needs --labels N"),
        ({"every_rth": 0}, r"every 0-th image was asked for"),
        ({"labels": 0}, r"0 images were asked for, expected 1 to 10"),
        ({"labels": 11}, r"11 images were asked for, expected 1 to 10"),
        ({"labels": 2, "val": 0.0}, r"val is 0.0, expected a share between 0 and 1"),
        ({"labels": 2, "group_by": "^("}, r"--group-by '\^\(' is no regular expression"),
        ({"labels": 2, "group_by": "clip0"}, r"--group-by 'clip0' does not match the id 'clip1_0'"),
        (
            {"labels": 2, "group_by": "clip"},
            r"--group-by 'clip' puts all 12 images into one group, expected at least two",
        ),
    ],
)
def test_what_cannot_be_split_is_refused_and_nothing_is_written(
    clips: Path, choice: dict[str, object], sentence: str
) -> None:
    with pytest.raises(PeersegError, match=sentence):
        split_folder(clips, clips, **choice)  # type: ignore[arg-type]
    assert not list(clips.glob("*.txt"))


@pytest.mark.parametrize("name", ["labeled", "unlabeled"])
def test_lists_are_not_overwritten(clips: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / f"{name}.txt").write_text("clip0_0\n")
    with pytest.raises(PeersegError, match=rf"{name}.txt' exists already: remove it, or choose another --out"):
        split_folder(clips, out, labels=2)
    assert [path.name for path in out.iterdir()] == [f"{name}.txt"]


def test_a_val_list_elsewhere_is_not_overwritten(clips: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "val.txt").write_text("clip0_0\n")
    with pytest.raises(PeersegError, match=r"out/val.txt' exists already"):
        split_folder(clips, tmp_path / "out", labels=2)


def test_a_val_draw_of_whole_groups_that_leaves_nothing_is_refused(clips: Path) -> None:
    by_two = "^(clip[01]|clip[23]|wild)"
    with pytest.raises(PeersegError, match=r"--val 0.9 of whole groups takes all 12 images: lower it"):
        split_folder(clips, clips, labels=2, val=0.9, group_by=by_two)


def test_a_val_list_that_cuts_a_group_is_refused(clips: Path) -> None:
    (clips / "val.txt").write_text("clip1_2\nclip0_0\n")
    with pytest.raises(PeersegError, match=r"val.txt holds '\w+' but not '\w+' of the same group: list whole groups"):
        split_folder(clips, clips, labels=2, group_by=BY_CLIP)


def test_a_val_list_of_whole_groups_is_kept(clips: Path, tmp_path: Path) -> None:
    (clips / "val.txt").write_text("".join(f"{id}\n" for id in FRAMES if clip(id) == "clip2"))
    split_folder(clips, tmp_path / "out", labels=3, group_by=BY_CLIP)
    found = lists(tmp_path / "out")

    assert {clip(id) for id in found["val"]} == {"clip2"}
    assert len({clip(id) for id in found["labeled"]}) == 1


def test_the_command_line_splits(clips: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["split", str(clips), "--labels", "3", "--cover", "--val", "0.3", "--seed", "2", "--out"]
    assert main([*words, str(tmp_path / "one"), "--group-by", "^([^_]+)_"]) == 0
    lines = split_folder(clips, tmp_path / "two", labels=3, cover=True, val=0.3, seed=2, group_by="^([^_]+)_")

    assert capsys.readouterr().out.splitlines() == [
        line.replace(str(tmp_path / "two"), str(tmp_path / "one")) for line in lines
    ]
    assert lists(tmp_path / "one") == lists(tmp_path / "two")


def test_a_place_that_cannot_be_written_is_one_sentence(clips: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PeersegError, match=r"cannot write .*file"):
        split_folder(clips, tmp_path / "file", labels=2)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=r"nowhere' is no folder, expected ROOT/images"):
        split_folder(tmp_path / "nowhere", tmp_path, labels=2)
