"""The command line: words in, exit codes and single sentences out."""

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from conftest import TINY, write_picture
from peerseg import __version__
from peerseg.cli import main
from peerseg.errors import StoppedError
from peerseg.experiment import running
from peerseg.experiment.reading import protocol_overrides
from peerseg.experiment.settings import settings_of
from peerseg.parsing import EXAMPLES
from peerseg.runs import CONFIG

Capture = pytest.CaptureFixture[str]
FEW = [word for name, value in TINY.items() for word in (f"--{name}", str(value))]
SMALL = "--network.name small --network.width 4 --loader.crop 16 --loader.batch 2 --loader.workers 0 --steps 4"


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("runs") / "tiny"
    assert main(["train", "demo", "--out", str(path), *FEW]) == 0
    return path


@pytest.fixture
def finished(finished_run: Path, tmp_path: Path) -> Path:
    """A copy to play with."""
    return Path(shutil.copytree(finished_run, tmp_path / "finished"))


@pytest.fixture
def begun(finished: Path) -> Path:
    """A run that was killed before it saved step 4."""
    shutil.rmtree(finished / "checkpoints" / "last-0000004")
    return finished


@pytest.fixture
def idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """Training is a mistake here."""

    def fit(*_: Any) -> None:
        raise AssertionError("nothing was to be trained")

    monkeypatch.setattr(running, "fit", fit)


def refusal(words: list[str], capsys: Capture) -> str:
    """The one sentence with which a command is refused; notes may come before it."""
    assert main(words) == 2
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert shown.out == ""
    assert [line for line in lines if line.startswith("peerseg: ")] == lines[-1:]
    assert "Traceback" not in shown.err
    return lines[-1].removeprefix("peerseg: ")


def printed(words: list[str], capsys: Capture) -> dict[str, Any]:
    """What ``--print_config`` prints."""
    assert main([*words, "--print_config"]) == 0
    config = yaml.safe_load(capsys.readouterr().out)
    assert isinstance(config, dict)
    return config


@pytest.mark.parametrize("verb", EXAMPLES)
def test_every_verb_shows_an_example(verb: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        main([verb, "--help"])
    shown = capsys.readouterr().out

    assert end.value.code == 0
    assert " ".join(f"example: {EXAMPLES[verb]}".split()) in " ".join(shown.split())


def test_help_lists_the_verbs_and_so_does_no_word_at_all(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    asked = capsys.readouterr().out

    assert end.value.code == 0
    assert main([]) == 0
    assert capsys.readouterr().out == asked
    assert all(f"\n    {verb} " in asked for verb in EXAMPLES)


def test_the_words_of_the_process_are_taken(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.argv", ["peerseg", "--version"])
    with pytest.raises(SystemExit) as end:
        main()

    assert end.value.code == 0
    assert capsys.readouterr().out == f"peerseg {__version__}\n"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("trainn demo", "'trainn' is no verb; did you mean 'train'?"),
        ("xyz", "'xyz' is no verb; known: compare, demo, evaluate, predict, split, train"),
        ("--sede", "'--sede'"),
        ("demo --step 3", "'--step' is unknown to `peerseg demo`; did you mean '--steps'?"),
        ("demo --steps many", "argument --steps: invalid int value: 'many'; `peerseg demo --help` shows an example"),
        ("demo --seeds", "argument --seeds: expected one argument"),
        ("demo --method.count 2", "'--method.count' is unknown to `peerseg demo`;"),
        ("demo --seeds -1", "seed is -1, expected a whole number of at least 0"),
        ("demo --steps 0", "steps is 0, expected a whole number of at least 1"),
        ("demo --protocol papre", "--protocol is 'papre'; did you mean 'paper'?"),
        ("evaluate", "the following arguments are required: run; `peerseg evaluate --help` shows an example"),
        ("evaluate nowhere", "'nowhere' is no run folder: it has no config.yaml"),
        ("evaluate runs/x --jsn", "'--jsn' is unknown to `peerseg evaluate`; did you mean '--json'?"),
        ("evaluate runs/x runs/y", "'runs/y' is unknown to `peerseg evaluate`; it takes no more words"),
        ("demo --data.root=photos", "'--data.root' is unknown to `peerseg demo`;"),
        ("predict nowhere . --out there", "no image was found in ., expected .png"),
        ("predict runs/x photo.png", "the following arguments are required: --out"),
        ("split nowhere --labels 2", "'nowhere' is no folder, expected ROOT/images"),
        ("split photos", "give either --every R (every R-th image) or --labels N (N images at random)"),
        ("train", "no recipe was given, expected a name or a file: peerseg train folder --data.root photos"),
        ("train demmo", "'demmo' is no recipe and no file; did you mean 'demo'?"),
        (
            "train mine.yaml",
            "the recipe file 'mine.yaml' does not exist; recipes that come along: camvid, cityscapes,",
        ),
        ("train demo folder", "'folder' is unknown to `peerseg train`; it takes no more words"),
        ("train demo --sede 3", "'--sede' is unknown to `peerseg train`; did you mean '--seed'?"),
        ("train demo --steps 2.5", "argument --steps: invalid int value: '2.5'"),
        ("train demo --seed -1", "seed is -1, expected a whole number of at least 0"),
        ("train demo --protocol cod", "--protocol is 'cod'; did you mean 'code'?"),
        ("train demo --optimiser.rate 1", "'optimiser' is no setting; did you mean 'optimizer'?"),
        ("train demo --optimizer.rats 1", "optimizer.rats is no setting of Optimization; did you mean 'rate'?"),
        ("train demo --optimizer.rate", "'--optimizer.rate' has no value: settings are given as --section.key value"),
        ("train demo --optimizer.rate fast", "optimizer.rate is 'fast', expected a number"),
        ("train demo --optimizer.rate=[1", "'--optimizer.rate=[1' has the value '[1', which cannot be read: quote it"),
        ("train demo --method.name ncsp", "method.name is 'ncsp'; did you mean 'ncps'?"),
        ("train demo --method.name no.lab:Swap", "'no.lab:Swap' cannot be imported (No module named 'no'): expected"),
        (
            "train demo --method.name json:loads",
            "method.name is 'json:loads', which is no class derived from peerseg.methods",
        ),
        ("train demo --method.name json:JSONDecoder", "method.name is 'json:JSONDecoder', which is no class derived"),
        ("train demo --network.name smalll", "network.name is 'smalll'; did you mean 'small'?"),
        ("train demo --network.encoder resnet18", "network.encoder is no setting of SmallNetwork;"),
        ("train folder", "data.root is missing, expected text: give --data.root"),
        ("train --resume nowhere", "'nowhere' is no run folder: it has no config.yaml; give the folder"),
        (
            "train demo --resume runs/x",
            "--resume takes a run folder alone: its recipe, protocol and folder are its own",
        ),
        ("train --resume runs/x --protocol code", "--resume takes a run folder alone"),
        ("train --resume runs/x --out runs/y", "--resume takes a run folder alone"),
        ("train --resume runs/x --print_config", "--resume takes a run folder alone"),
        ("train demo --steps.x 3", "'steps.x' is no setting: 'steps' has no parts"),
    ],
)
def test_mistakes_are_one_line(
    line: str, sentence: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = refusal(line.split(), capsys)

    assert sentence in found
    assert list(tmp_path.iterdir()) == [], "nothing is begun"


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("--data.root nowhere", "nowhere' is no folder, expected ROOT/images/*.jpg and ROOT/masks/*.png"),
        ("--method.count 1", "n-CPS was given 1 network, expected at least 2: set method.count to 2 or more"),
        ("--method.name ncps --method.count 1", "n-CPS was given 1 network, expected at least 2"),
        ("--evaluation.best svv", "evaluation.best is 'svv'; did you mean 'sv'?"),
        ("--loader.crop 20", "loader.crop is [20, 20], expected multiples of 8 for this network, such as [16, 16]"),
        (
            "--loader.batch 3",
            "3 unlabeled images a step have no pairs to mix: set loader.unlabeled_batch to an even number",
        ),
        ("--evaluation.window 0", "evaluation.window is 0, expected a number of pixels"),
        ("--placement.device gpu", "placement.device is 'gpu', which this machine does not offer: use 'auto' or 'cpu'"),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    folder: Path, tmp_path: Path, line: str, sentence: str, capsys: Capture
) -> None:
    words = f"train folder --data.root {folder} {SMALL} --out {tmp_path / 'run'} {line}"
    assert sentence in refusal(words.split(), capsys)
    assert not (tmp_path / "run" / "checkpoints").exists()


def test_an_unknown_encoder_names_the_nearest(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    words = f"train folder --data.root {folder} --network.encoder resnet188 --out {tmp_path / 'run'}"
    assert "network.encoder is 'resnet188', which neither library knows; did you mean 'resnet18" in refusal(
        words.split(), capsys
    )


def test_a_refused_training_can_be_repeated_with_the_mistake_mended(
    folder: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "run"
    words = f"train folder {SMALL} --method.name supervised --method.count 1 --out {out}".split()
    refusal([*words, "--data.root", str(tmp_path / "typo")], capsys)

    assert main([*words, "--data.root", str(folder)]) == 0
    assert (out / "report.html").is_file()


@pytest.mark.parametrize("protocol", [None, "paper", "code"])
@pytest.mark.parametrize("recipe", ["demo", "folder"])
def test_a_printed_config_is_a_recipe_again(
    recipe: str, protocol: str | None, tmp_path: Path, capsys: Capture, idle: None
) -> None:
    words = ["train", recipe, "--method.count", "2", "--steps=7", "--seed", "3", "--loader.scales", "[0.5, 1]"]
    words += ["--data.root", "photos"] if recipe == "folder" else []
    words += ["--protocol", protocol] if protocol else []
    config = printed(words, capsys)
    path = tmp_path / "again.yaml"
    path.write_text(yaml.safe_dump(config))

    assert printed(["train", str(path)], capsys) == config
    assert (config["method"]["count"], config["steps"], config["seed"]) == (2, 7, 3)
    assert config["loader"]["scales"] == [0.5, 1.0]
    assert [path.name for path in tmp_path.iterdir()] == ["again.yaml"]


@pytest.mark.parametrize("protocol", ["paper", "code"])
@pytest.mark.parametrize("method", ["ncps", "ncps-cutmix"])
def test_a_protocol_changes_the_method_keys_it_lists_and_nothing_else(
    protocol: str, method: str, capsys: Capture
) -> None:
    words = ["train", "demo", "--method.name", method]
    before, after = printed(words, capsys), printed([*words, "--protocol", protocol], capsys)
    listed = {name.removeprefix("method."): value for name, value in protocol_overrides(protocol, method).items()}

    assert after == before | {"method": before["method"] | listed}
    assert after != before


def test_the_remedy_for_an_empty_recipe_works(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "empty.yaml").write_text("")
    sentence = refusal(["train", str(tmp_path / "empty.yaml")], capsys)
    command = sentence.split("`")[1].split()

    assert command[0] == "peerseg"
    assert main(command[1:]) == 0


def test_dropped_settings_are_said(capsys: Capture) -> None:
    assert main(["train", "demo", "--method.name", "supervised", "--print_config"]) == 0
    shown = capsys.readouterr()

    assert "method.name was changed, so the recipe's method settings weight, ramp, " in shown.err
    assert yaml.safe_load(shown.out)["method"] == {"name": "supervised", "count": 3, "hardest": None, "certain": 0.7}


def test_a_training_is_written_where_its_recipe_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(yaml.safe_dump(settings_of("demo", TINY | {"steps": 1})[0].as_dict()))
    for _ in range(2):
        assert main(["train", "mine.yaml", "--method.name", "supervised"]) == 0

    assert sorted(path.as_posix() for path in Path("runs").iterdir()) == ["runs/mine", "runs/mine-2"]
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "done: runs/mine-2; report: runs/mine-2/report.html" in shown.err
    assert "next: peerseg evaluate runs/mine, or peerseg predict runs/mine IMAGES --out DIR" in shown.err


def test_training_says_what_it_does(finished_run: Path, tmp_path: Path, capsys: Capture) -> None:
    assert main(["train", "demo", "--out", str(tmp_path / "run"), *FEW]) == 0
    shown = capsys.readouterr().err

    assert "3 labeled, 5 unlabeled and 2 val images, 6 classes" in shown
    assert "ncps-cutmix: 3 networks" in shown
    assert "run: step 4 of 4: mIoU single " in shown
    for name in ("config.yaml", "metrics.csv", "losses.csv"):
        assert (tmp_path / "run" / name).read_text() == (finished_run / name).read_text()


def test_an_existing_run_is_not_overwritten(finished: Path, idle: None, capsys: Capture) -> None:
    sentence = refusal(["train", "demo", "--out", str(finished), *FEW], capsys)
    assert f"already holds a run; go on with `peerseg train --resume {finished}` or choose another --out" in sentence


def test_a_begun_run_goes_on(begun: Path, finished_run: Path) -> None:
    assert main(["train", "--resume", str(begun), "--loader.workers", "1"]) == 0

    assert (begun / "metrics.csv").read_text() == (finished_run / "metrics.csv").read_text()
    for network in finished_run.glob("checkpoints/last-0000004/network*.safetensors"):
        assert (begun / network.relative_to(finished_run)).read_bytes() == network.read_bytes()


def test_a_finished_run_says_so_and_is_done(finished: Path, idle: None, capsys: Capture) -> None:
    assert main(["train", "--resume", str(finished)]) == 0
    assert f"{finished} is finished: all 4 steps are made" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("--optimizer.rate 0.5", "optimizer.rate"),
        ("--steps 8", "steps"),
        ("--seed 1", "seed"),
        ("--data.size=32", "data.size"),
    ],
)
def test_other_settings_are_refused_by_name(begun: Path, idle: None, line: str, named: str, capsys: Capture) -> None:
    sentence = refusal(["train", "--resume", str(begun), *line.split()], capsys)
    assert sentence == f"{named} cannot change when {str(begun)!r} is resumed: leave it out, or start a new run with it"


def test_a_method_of_one_s_own_is_found_in_the_folder_one_works_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", sys.path.copy())
    Path("cli_lab.py").write_text(
        "from peerseg.methods import Supervised\nclass Mine(Supervised):\n"
        "    def __init__(self, networks, *, share: float = 0.5):\n        super().__init__(networks)\n"
    )
    config = printed(["train", "demo", "--method.name", "cli_lab:Mine", "--method.share", "0.25"], capsys)

    assert config["method"] == {"name": "cli_lab:Mine", "count": 3, "share": 0.25}
    assert "says nothing of the method 'cli_lab:Mine'" in refusal(
        ["train", "demo", "--method.name", "cli_lab:Mine", "--protocol", "code"], capsys
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("count: 3 -> count: 2", "holds 3 networks, expected 2: set method.count to 3"),
        ("width: 4 -> width: 8", "expected the same network, classes and method as in the run's config.yaml"),
    ],
)
@pytest.mark.parametrize("line", ["evaluate RUN", "train --resume RUN", "predict RUN RUN/picture.png --out RUN/out"])
def test_a_checkpoint_that_does_not_fit_is_refused(
    line: str, change: str, sentence: str, begun: Path, capsys: Capture
) -> None:
    write_picture(begun / "picture.png")
    (begun / CONFIG).write_text((begun / CONFIG).read_text().replace(*change.split(" -> ")))
    assert sentence in refusal(line.replace("RUN", str(begun)).split(), capsys)


@pytest.mark.parametrize("verb", ["train", "evaluate", "predict"])
def test_a_folder_that_is_no_run_is_refused(verb: str, folder: Path, capsys: Capture) -> None:
    words = {"train": ["train", "--resume", str(folder)], "evaluate": ["evaluate", str(folder)]}
    words["predict"] = ["predict", str(folder), str(folder), "--out", str(folder / "out")]

    assert f"{str(folder)!r} is no run folder: it has no config.yaml" in refusal(words[verb], capsys)


def test_a_run_without_a_checkpoint_says_how_to_go_on(begun: Path, capsys: Capture) -> None:
    shutil.rmtree(begun / "checkpoints")
    assert f"go on with `peerseg train --resume {begun}`" in refusal(["evaluate", str(begun)], capsys)


@pytest.mark.parametrize("number", [15, 2])
def test_a_stop_says_how_to_go_on_and_tells_its_signal(
    number: int, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: Any) -> None:
        raise StoppedError(number, "runs/x")

    monkeypatch.setattr(running, "start", stopped)

    assert main(["train", "demo"]) == 128 + number
    assert capsys.readouterr().err == "peerseg: stopped and saved; go on with: peerseg train --resume runs/x\n"


def test_our_own_mistakes_keep_their_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(running, "start", broken)
    with pytest.raises(ZeroDivisionError):
        main(["train", "demo"])


def test_a_stop_before_anything_is_trained_is_one_line_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "build", interrupted)
    assert main(["train", "demo", "--out", str(tmp_path / "run"), *FEW]) == 130
    assert capsys.readouterr().err == "peerseg: stopped; there was nothing to save\n"
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20 GiB"),
        RuntimeError(
            "[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory: you tried to allocate"
        ),
    ],
)
def test_full_memory_says_what_to_lower(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Capture, error: Exception
) -> None:
    def full(*_: object) -> None:
        raise error

    monkeypatch.setattr(running, "fit", full)
    assert main(["train", "demo", "--out", str(tmp_path / "run"), *FEW]) == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("peerseg: memory is full: set loader.batch or loader.crop lower")


def test_hints_can_be_pasted(tmp_path: Path, capsys: Capture) -> None:
    run = tmp_path / "läufe 1"
    assert main(["train", "demo", "--out", str(run), *FEW]) == 0
    assert f"next: peerseg evaluate '{run}', or" in capsys.readouterr().err
    assert str(StoppedError(15, "a b")).endswith("--resume 'a b'")


def test_steps_changed_by_hand_are_refused(finished: Path, capsys: Capture) -> None:
    config = finished / CONFIG
    config.write_text(config.read_text().replace("steps: 4", "steps: 8"))
    assert main(["train", "--resume", str(finished)]) == 2
    assert "says 8 steps, but the run began with 4" in capsys.readouterr().err


def test_a_lost_best_checkpoint_says_what_there_is(finished: Path, capsys: Capture) -> None:
    for best in (finished / "checkpoints").glob("best-*"):
        shutil.rmtree(best)
    assert main(["evaluate", str(finished)]) == 2
    assert "has no best checkpoint: use --checkpoint last" in capsys.readouterr().err
