"""What a trained run answers: in-training scores, ``evaluate`` and the files of ``predict`` agree to the last pixel."""

import json
import shutil
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

import peerseg
from peerseg.answers import evaluate_run, predict_files
from peerseg.cli import main
from peerseg.data import ImageFolder
from peerseg.data.files import read_image
from peerseg.errors import PeersegError
from peerseg.experiment.results import metrics_of
from peerseg.inference import confusion
from peerseg.inference.evaluate import Scores, class_iou
from peerseg.report.pictures import overlay
from peerseg.runs import RunFolder

# Coarse blocks that a tiny network can learn a little in few steps, so that networks and votes differ.
SIZES = [(20, 24), (21, 27), (33, 19), (17, 40), (16, 16), (25, 23), (20, 20), (19, 31)]
VOTES = ("single", "net2", "net3", "mc", "sv", "hv")
TINY = ["--network.name", "small", "--network.width", "4", "--loader.crop", "16", "--loader.batch", "2"]
TINY += ["--loader.workers", "0", "--steps", "16", "--evaluation.every", "8", "--optimizer.rate", "0.3"]
TINY += ["--evaluation.window", "16", "--evaluation.flip", "true", "--seed", "2"]


def save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    PIL.Image.fromarray(pixels.astype(np.uint8)).save(path)


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pictures of odd and unequal sizes; five have masks, two of them judge; one mask holds ignored pixels."""
    root = tmp_path_factory.mktemp("data") / "photos"
    for k, size in enumerate(SIZES):
        name = f"day.{k // 4}/img{k}.png"
        random = np.random.default_rng(k)
        mask = random.integers(0, 2, (5, 5), dtype=np.uint8).repeat(8, 0).repeat(8, 1)[: size[0], : size[1]]
        picture = mask[:, :, None] * 80 + random.integers(0, 176, (*size, 3))
        save(root / "images" / name, picture)
        if k < 5:
            save(root / "masks" / name, mask)
    mask = np.array(PIL.Image.open(root / "masks" / "day.1" / "img4.png"))
    mask[:4], mask[4] = 255, 254
    save(root / "masks" / "day.1" / "img4.png", mask)
    (root / "val.txt").write_text("day.0/img3\nday.1/img4\n")
    (root / "classes.yaml").write_text("classes: [ground, tree]\n")
    (root / "masks" / "none").mkdir()
    return root


@pytest.fixture(scope="module")
def run(photos: Path) -> Path:
    path = photos.parent / "run"
    assert main(["train", "folder", "--data.root", str(photos), "--out", str(path), *TINY]) == 0
    return path


@pytest.fixture(scope="module")
def answers(run: Path, photos: Path) -> Path:
    """Every vote's files at the last step, one folder a vote."""
    out = photos.parent / "answers"
    for vote in VOTES:
        words = ["predict", str(run), str(photos / "images"), "--out", str(out / vote), "--vote", vote]
        assert main([*words, "--checkpoint", "last", "--disagreement", "--probabilities"]) == 0
    return out


def labels(path: Path) -> np.ndarray:
    with PIL.Image.open(path) as file:
        assert file.mode == "P"
        return np.asarray(file)


def test_training_leaves_a_report(run: Path) -> None:
    assert (run / "report.html").is_file()
    assert {row["step"] for row in RunFolder.open(run).rows("metrics.csv")} == {"8", "16"}


def test_evaluate_files_and_training_agree_to_the_last_pixel(
    run: Path, photos: Path, answers: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["evaluate", str(run), "--checkpoint", "last", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    dataset = ImageFolder(photos)
    judges = dataset.split().val
    rows = metrics_of(RunFolder.open(run), 16)

    assert list(told) == ["miou", "iou", "disagreement", "images"]
    assert tuple(told["miou"]) == tuple(told["iou"]) == tuple(rows) == VOTES
    assert told["images"] == len(judges) == 2
    for vote in VOTES:
        matrix = sum(confusion(dataset.mask(id), labels(answers / vote / f"{id}.png"), 2) for id in judges)
        scores = Scores({vote: matrix}, dataset.label_space.names, None, 2)
        assert list(told["iou"][vote].values()) == class_iou(matrix)
        assert told["miou"][vote] == rows[vote]["miou"] == scores.miou(vote)
        assert told["iou"][vote] == {name: rows[vote][f"iou:{name}"] for name in dataset.label_space.names}
        assert matrix.sum() == 17 * 40 + 11 * 16, "ignored and unlabeled pixels are not counted"


def test_networks_and_votes_differ_enough_to_be_told_apart(run: Path, answers: Path) -> None:
    shown = {vote: [labels(answers / vote / f"day.{k // 4}/img{k}.png") for k in range(8)] for vote in VOTES}
    joined = {vote: np.concatenate([one.ravel() for one in maps]).tobytes() for vote, maps in shown.items()}

    assert all(set(joined[vote]) == {0, 1} for vote in VOTES)
    assert len({joined[vote] for vote in ("single", "net2", "net3")}) == 3
    assert len(set(joined.values())) >= 5
    assert len(set(evaluate_run(run, "last").as_dict()["miou"].values())) >= 4


def test_disagreement_is_the_same_in_files_evaluation_and_training(run: Path, photos: Path, answers: Path) -> None:
    told = evaluate_run(run, "last").disagreement
    maps = [np.asarray(PIL.Image.open(answers / "sv" / "disagreement" / f"day.{k // 4}/img{k}.png")) for k in (3, 4)]
    differing = sum(int((one == 255).sum()) for one in maps)

    assert set(np.unique(np.concatenate([one.ravel() for one in maps]))) <= {0, 255}
    assert 0 < told < 100
    assert told == 100 * differing / sum(one.size for one in maps)
    assert {row["disagreement"] for row in metrics_of(RunFolder.open(run), 16).values()} == {told}


def test_python_gives_the_labels_of_the_files(run: Path, photos: Path, answers: Path) -> None:
    ensemble = peerseg.load(run, "last")
    for k, size in enumerate(SIZES):
        id = f"day.{k // 4}/img{k}"
        found = ensemble.predict(read_image(photos / "images" / f"{id}.png"))
        with np.load(answers / "sv" / "probabilities" / f"{id}.npz") as file:
            np.testing.assert_array_equal(file["probabilities"], found.probabilities)
        np.testing.assert_array_equal(labels(answers / "sv" / f"{id}.png"), found.labels)
        assert found.probabilities.shape == (3, 2, *size)


def test_the_best_checkpoint_answers_by_default(run: Path, photos: Path, tmp_path: Path) -> None:
    image = photos / "images" / "day.0" / "img0.png"
    assert main(["predict", str(run), str(image), "--out", str(tmp_path)]) == 0

    np.testing.assert_array_equal(labels(tmp_path / "img0.png"), peerseg.load(run).predict(read_image(image)).labels)
    best = next((run / "checkpoints").glob("best-*")).name
    assert (
        evaluate_run(run).miou("sv") == metrics_of(RunFolder.open(run), int(best.removeprefix("best-")))["sv"]["miou"]
    )


def test_a_run_is_judged_otherwise_than_in_training_if_told_so(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scores = {}
    for way in ("true", "false"):
        assert main(["evaluate", str(run), "--json", "--evaluation.flip", way]) == 0
        scores[way] = json.loads(capsys.readouterr().out)
    assert main(["evaluate", str(run), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == scores["true"], "as in training"
    assert scores["true"] != scores["false"]


@pytest.mark.parametrize("verb", [["evaluate"], ["predict"]])
def test_only_the_evaluation_can_be_changed_after_training(
    run: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], verb: list[str]
) -> None:
    words = [*verb, str(run)] + (
        [str(photos / "images"), "--out", str(tmp_path / "out")] if verb == ["predict"] else []
    )
    assert main([*words, "--method.count", "2"]) == 2
    told = capsys.readouterr().err
    assert "method.count is settled by the training" in told
    assert main([*words, "--evaluation.flp", "true"]) == 2
    assert "did you mean 'flip'" in capsys.readouterr().err


@pytest.mark.parametrize(("asked", "other"), [("best", "last"), ("last", "best")])
def test_the_asked_for_checkpoint_answers(run: Path, photos: Path, tmp_path: Path, asked: str, other: str) -> None:
    copy = Path(shutil.copytree(run, tmp_path / "run"))
    for checkpoint in copy.glob(f"checkpoints/{other}-*"):
        shutil.rmtree(checkpoint)

    assert evaluate_run(copy, asked).as_dict() == evaluate_run(run, asked).as_dict()
    assert predict_files(copy, [photos / "images"], tmp_path / "out", which=asked) == 8
    with pytest.raises(PeersegError, match=f"has no {other} checkpoint"):
        evaluate_run(copy, other)
    with pytest.raises(PeersegError, match=f"has no {other} checkpoint"):
        predict_files(copy, [photos / "images"], tmp_path / "out", which=other)


def test_files_of_a_folder_keep_their_place_and_stem(answers: Path) -> None:
    wanted = {Path(f"day.{k // 4}/img{k}.png") for k in range(8)}
    found = {path.relative_to(answers / "sv") for path in (answers / "sv").rglob("*") if path.is_file()}

    assert found == {
        *wanted,
        *(Path("overlays") / path for path in wanted),
        *(Path("disagreement") / path for path in wanted),
        *(Path("probabilities") / path.with_suffix(".npz") for path in wanted),
    }


def test_only_labels_and_overlays_unless_asked_for_more(run: Path, photos: Path, tmp_path: Path) -> None:
    files = [photos / "images" / "day.0" / name for name in ("img0.png", "img2.png")]

    assert predict_files(run, files, tmp_path) == 2
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.*")) == [
        *("img0.png", "img2.png", "overlays/img0.png", "overlays/img2.png")
    ]


def test_palettes_and_overlays_show_the_classes_colors(run: Path, photos: Path, answers: Path) -> None:
    space = ImageFolder(photos).label_space
    file = PIL.Image.open(answers / "sv" / "day.0" / "img1.png")
    shown = np.asarray(PIL.Image.open(answers / "sv" / "overlays" / "day.0" / "img1.png"))
    painted = space.paint(np.asarray(file))

    np.testing.assert_array_equal(np.asarray(file.convert("RGB")), painted)
    np.testing.assert_array_equal(shown, overlay(read_image(photos / "images" / "day.0" / "img1.png"), painted))


def test_evaluate_prints_every_class_and_the_mean(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["evaluate", str(run)]) == 0
    scores = evaluate_run(run)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    by_class = {name: [scores.iou(vote)[name] for vote in VOTES] for name in scores.names}

    assert lines[0] == ["class", *VOTES]
    for line, (name, values) in zip(lines[1:], by_class.items(), strict=False):
        assert line == [name, *("-" if value is None else f"{value:.1f}" for value in values)]
    assert lines[3] == ["mean", *(f"{scores.miou(vote):.1f}" for vote in VOTES)]
    assert " ".join(lines[4]) == f"the networks disagree on {scores.disagreement:.1f}% of the pixels of 2 images"


def test_data_of_other_classes_is_refused(run: Path, photos: Path, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(photos, tmp_path / "photos"))
    (copy / "classes.yaml").write_text("classes: [ground, road]\n")
    other = Path(shutil.copytree(run, tmp_path / "run"))
    (other / "config.yaml").write_text((run / "config.yaml").read_text().replace(str(photos), str(copy)))

    with pytest.raises(
        PeersegError, match=r"the data now has the classes ground, road, the run was trained on ground, tree: restore"
    ):
        evaluate_run(other)


def test_other_val_images_than_in_training_are_refused(run: Path, photos: Path) -> None:
    before = (photos / "val.txt").read_text()
    try:
        (photos / "val.txt").write_text("day.0/img0\nday.1/img4\n")
        with pytest.raises(
            PeersegError, match=r"the val images are not those of the run .* restore the lists and masks"
        ):
            evaluate_run(run)
    finally:
        (photos / "val.txt").write_text(before)


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ("images/nowhere.png", r"nowhere.png' does not exist: give image files, or folders of them"),
        ("images/day.0 images/day.0/img1.png", r"would both be answered as 'img1': give their common folder"),
        ("masks/none", r"no image was found in .*none, expected .png, "),
        ("images --vote net4", r"'net4' is no vote of 3 networks; did you mean 'net3'"),
        ("images --vote avg", r"'avg' is no vote of 3 networks; known: "),
        ("images --checkpoint first", r"--checkpoint is 'first', expected 'best' or 'last'"),
        ("val.txt", r"val.txt' cannot be read as an image"),
    ],
)
def test_what_cannot_be_answered_is_refused_and_nothing_is_written(
    run: Path, photos: Path, tmp_path: Path, asked: str, sentence: str
) -> None:
    names, *options = asked.split(" --")
    keywords = {"which" if key == "checkpoint" else key: value for key, value in map(str.split, options)}
    with pytest.raises(PeersegError, match=sentence):
        predict_files(run, [photos / name for name in names.split()], tmp_path / "out", **keywords)  # type: ignore[arg-type]
    assert not (tmp_path / "out").exists()


def test_a_picture_of_other_channels_is_named(run: Path, tmp_path: Path) -> None:
    PIL.Image.fromarray(np.zeros((8, 8), np.uint8)).save(tmp_path / "gray.png")
    with pytest.raises(PeersegError, match=r"gray.png"):
        predict_files(run, [tmp_path / "gray.png"], tmp_path / "out")


def test_answers_that_cannot_be_written_are_one_sentence(run: Path, photos: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PeersegError, match=r"cannot write .*file'"):
        predict_files(run, [photos / "images"], tmp_path / "file")


def test_pictures_are_never_overwritten_by_their_answers(run: Path, photos: Path, tmp_path: Path) -> None:
    images = Path(shutil.copytree(photos / "images", tmp_path / "images"))
    before = {path: path.read_bytes() for path in images.rglob("*.png")}
    status = main(["predict", str(run), str(images), "--out", str(images)])

    assert {path: path.read_bytes() for path in before} == before
    assert status == 2


def test_two_pictures_with_one_answer_are_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a.png", "overlays/a.png"):
        save(tmp_path / "new" / name, np.zeros((16, 16, 3)))
    assert main(["predict", str(run), str(tmp_path / "new"), "--out", str(tmp_path / "out")]) == 2
    assert "overlays/a.png' would be the answer to two images" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_data_that_was_moved_can_be_judged_and_learned_from_where_it_lies(
    run: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy, moved = shutil.copytree(run, tmp_path / "run"), shutil.copytree(photos, tmp_path / "photos #2")
    shutil.rmtree(next((copy / "checkpoints").glob("last-0000016")))
    config = copy / "config.yaml"
    config.write_text(config.read_text().replace(str(photos), "/nowhere"))
    assert "root: /nowhere" in config.read_text()
    assert main(["train", "--resume", str(copy), "--data.root", str(moved)]) == 0
    capsys.readouterr()
    assert main(["evaluate", str(copy), "--json", "--checkpoint", "last", "--data.root", str(moved)]) == 0
    assert json.loads(capsys.readouterr().out) == evaluate_run(run, "last").as_dict()


def test_changed_val_masks_are_refused(
    run: Path, photos: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moved = Path(shutil.copytree(photos, tmp_path / "photos"))
    save(moved / "masks" / "day.0" / "img3.png", np.zeros(SIZES[3]))
    assert main(["evaluate", str(run), "--data.root", str(moved)]) == 2
    assert "the val masks are not those of the run" in capsys.readouterr().err


def test_an_image_of_another_type_is_refused(run: Path) -> None:
    with pytest.raises(PeersegError, match="the image holds int64 values, expected uint8, uint16 or float32"):
        peerseg.load(run).predict(np.zeros((16, 16, 3), np.int64))
