"""The CamVid experiments on a fake of its folder: the protocol's split, every arm's settings, rows, and nothing run twice."""

import csv
from pathlib import Path
from typing import Any

import pytest

from benchmarks import camvid
from benchmarks.camvid import ARMS, HEADS, collect, main, run_one, split_of
from conftest import write_labels, write_picture
from peerseg.experiment import running
from peerseg.experiment.settings import settings_of

FRAMES = {"0001TP": range(6690, 7590, 30), "0006R0": range(930, 1080, 30), "0016E5": range(7300, 8800, 30)}
TRAIN = [f"{name}_{'f' if name == '0006R0' else ''}{k:05}" for name, frames in FRAMES.items() for k in frames]
POOL = 30 + 10 + 9  # of the first sequence, and of the third before and after the gap
VAL = ["0016E5_07959", "0016E5_07961"]
SMALL = {"network.name": "small", "network.width": 4, "loader.crop": 16, "loader.batch": 2, "loader.workers": 0}


def test_the_split_keeps_the_report_and_the_neighbors_of_val_out() -> None:
    split = split_of(TRAIN, VAL, 4, 0)
    used = {*split.labeled, *split.unlabeled}
    assert not any(id.startswith("0006R0") for id in used)
    assert not any("0016E5_07600" <= id <= "0016E5_08500" for id in used)
    assert {"0016E5_07570", "0016E5_08530"} <= used
    assert len(used) == len(split.labeled) + len(split.unlabeled) == POOL
    assert split.val == tuple(VAL)


@pytest.mark.parametrize("ratio", [2, 4, 8])
def test_labels_are_drawn_in_blocks_of_consecutive_frames(ratio: int) -> None:
    draws = [split_of(TRAIN, VAL, ratio, seed) for seed in range(4)]
    assert len({split.labeled for split in draws}) == 4
    for split in draws:
        assert len(split.labeled) == POOL // ratio
        pool = sorted({*split.labeled, *split.unlabeled})
        runs = sum(pool[pool.index(id) - 1] not in split.labeled for id in split.labeled if pool.index(id))
        assert runs <= len(split.labeled) // 5 + 2


@pytest.mark.parametrize(("experiment", "arm"), [(name, arm) for name, arms in ARMS.items() for arm in arms])
def test_every_arm_can_be_made(experiment: str, arm: str) -> None:
    overrides = dict(ARMS[experiment][arm])
    protocol = overrides.pop("protocol", None)
    settings = settings_of("camvid", {"data.root": "camvid", **overrides}, protocol)[0]
    assert settings.evaluation["every"] == settings.steps, "scores are of the last step"
    assert settings.evaluation["scales"] == (0.5,)


def test_arms_have_names_of_their_own() -> None:
    names = [arm for arms in ARMS.values() for arm in arms]
    assert len(set(names)) == len(names)
    assert {"supervised-ensemble", "ncps-default"} <= set(names)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for k, name in enumerate((*TRAIN, *VAL)):
        write_picture(tmp_path / "camvid/images" / f"{name}.png", seed=k)
        write_labels(tmp_path / "camvid/masks" / f"{name}.png", seed=k)
    for name, ids in (("train", TRAIN), ("val", VAL)):
        (tmp_path / "camvid" / f"{name}.txt").write_text("\n".join(ids) + "\n")
    (tmp_path / "camvid/classes.yaml").write_text("classes: [road, tree]\n")
    return tmp_path / "camvid"


def test_rows_are_written_and_collected_and_nothing_is_trained_twice(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = {"base": {"tiny": SMALL | {"steps": 1, "evaluation.every": 1}}}
    monkeypatch.setattr(camvid, "ARMS", arms)
    trained: list[str] = []
    fit = running.fit

    def noted(*words: Any) -> None:
        trained.append("run")
        fit(*words)

    monkeypatch.setattr(running, "fit", noted)
    for seed in (0, 1, 0):
        run_one(data, tmp_path / "runs", "tiny", 8, seed)
    assert len(trained) == 2

    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "camvid.csv").write_text(
        ",".join(HEADS) + "\nbase,other,1/8,0,val,700,sv,50.00\nbase,tiny,1/8,0,val,1,sv,0.00\n"
    )
    collect(tmp_path / "runs", docs)
    with (docs / "camvid.csv").open(encoding="utf8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["arm"] for row in rows} == {"other", "tiny"}, "rows of runs made elsewhere stay"
    tiny = [row for row in rows if row["arm"] == "tiny"]
    assert len(tiny) == 2 * 2 * 6
    assert {(row["labels"], row["seed"], row["images"], row["step"]) for row in tiny} == {
        ("1/8", seed, images, "1") for seed in "01" for images in ("val", "report")
    }
    assert all(float(row["miou"]) > 0 for row in tiny if row["vote"] == "sv"), "the newest run wins"
    assert (docs / "camvid-disagreement.csv").read_text().count("tiny") == 4

    monkeypatch.setattr(camvid, "collect", lambda out: 7)
    main(["collect", str(tmp_path / "runs")])
    assert capsys.readouterr().out == "7 rows\n"


def test_several_runs_are_processes_of_their_own(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []

    class Done:
        returncode = 1

    def run(command: list[str], **_: Any) -> Done:
        asked.append(command)
        return Done()

    monkeypatch.setattr(camvid.subprocess, "run", run)
    main([str(data), str(tmp_path / "runs"), "--labels", "8,4", "--jobs", "2", "base", "ramp-none"])
    named = {(words[5], words[7], words[9]) for words in asked}
    assert named == {(arm, ratio, "0") for arm in (*ARMS["base"], "ramp-none") for ratio in ("8", "4")}
    assert (tmp_path / "runs/lists/1-4-seed0/labeled.txt").exists()
