"""The comparison: equal steps, equal compute by counted passes, differences to the first, and nothing trained twice."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from conftest import TINY, write_labels, write_picture
from peerseg.cli import main
from peerseg.compare import Contender, compare, contenders
from peerseg.errors import PeersegError
from peerseg.experiment import running
from peerseg.experiment.running import start
from peerseg.networks import SmallNetwork
from peerseg.training import loop

SMALLER = {name: value for name, value in TINY.items() if name not in ("steps", "evaluation.every")}
LARGER = SMALLER | {"data.size": 40, "loader.crop": 32}
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("compare") / "out"
    words = [word for name, value in SMALLER.items() for word in (f"--{name}", str(value))]
    methods = ["--methods", "supervised,mean-teacher,dmt,ncps-strong"]
    assert main(["compare", "demo", *methods, "--seeds", "0,1", "--steps", "3", "--out", str(path), *words]) == 0
    return path


def test_every_method_makes_equal_steps_and_then_as_many_as_cost_the_same(out: Path) -> None:
    found = json.loads((out / "comparison.json").read_text())["methods"]
    assert {name: one["compute"] for name, one in found.items()} == pytest.approx(
        {"supervised": 1, "mean-teacher": 8 / 3, "dmt": 8 / 3, "ncps-strong": 7}
    )
    assert {name: one["equal compute"]["steps"] for name, one in found.items()} == {
        **{"supervised": 21, "mean-teacher": 8, "dmt": 8, "ncps-strong": 3}
    }
    made = {path.name for path in (out / "runs").iterdir()}
    names = ("supervised-3", "supervised-21", "mean-teacher-3", "mean-teacher-8", "dmt-3", "dmt-8", "ncps-strong-3")
    assert made == {f"{name}-seed{seed}" for name in names for seed in SEEDS}, "the costliest is trained once"


def test_stages_share_the_steps(out: Path) -> None:
    assert "steps: 1\n" in (out / "runs/dmt-3-seed0/config.yaml").read_text()
    assert "steps: 2\n" in (out / "runs/dmt-8-seed0/config.yaml").read_text()


def test_differences_are_paired_and_to_the_first(out: Path) -> None:
    found = json.loads((out / "comparison.json").read_text())["methods"]
    for kind in ("equal steps", "equal compute"):
        base = found["supervised"][kind]["votes"]["single"]["seeds"]
        for name, vote in (("mean-teacher", "single"), ("ncps-strong", "sv")):
            one = found[name][kind]
            gains = [own - other for own, other in zip(one["votes"][vote]["seeds"], base, strict=True)]
            assert one["vote"] == vote
            assert one["difference"]["mean"] == pytest.approx(sum(gains) / 2)
            half = 12.7062 * abs(gains[0] - gains[1]) / 2
            assert one["difference"]["interval"] == pytest.approx([sum(gains) / 2 - half, sum(gains) / 2 + half])


def test_the_table_and_the_pages_are_written(out: Path) -> None:
    rows = (out / "comparison.md").read_text().splitlines()
    assert [row.split(" | ")[0].strip("| ") for row in rows[2:]] == ["supervised", "mean-teacher", "dmt", "ncps-strong"]
    assert "| 8 + 0, 3 stages | 2.7 |" in rows[4]
    for kind in ("equal-steps", "equal-compute"):
        page = (out / kind / "report.html").read_text(encoding="utf8")
        assert all(name in page for name in ("supervised", "mean-teacher", "dmt", "ncps-strong", "<svg"))


def test_a_second_call_trains_nothing(out: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fit(*_: Any) -> None:
        raise AssertionError("nothing was to be trained")

    monkeypatch.setattr(running, "fit", fit)
    before = json.loads((out / "comparison.json").read_text())
    words = [word for name, value in SMALLER.items() for word in (f"--{name}", str(value))]
    methods = ["--methods", "supervised,mean-teacher,dmt,ncps-strong"]
    assert (
        main(["compare", "demo", *methods, "--seeds", "0,1", "--steps", "3", "--out", str(out), "--json", *words]) == 0
    )
    assert json.loads(capsys.readouterr().out) == before


def test_a_folder_is_compared_on_by_the_recipe_for_folders(tmp_path: Path) -> None:
    for k in range(8):
        write_picture(tmp_path / "photos/images" / f"{k}.png", seed=k)
        if k < 5:
            write_labels(tmp_path / "photos/masks" / f"{k}.png", seed=k)
    small = {"network.name": "small", "network.width": 4, "loader.crop": 16, "loader.batch": 2, "loader.workers": 0}
    found = compare(str(tmp_path / "photos"), ["supervised"], [0], tmp_path / "out", steps=2, overrides=small)
    assert found.equal_steps.runs["supervised"][0].settings()["data"]["root"] == str(tmp_path / "photos")


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        (["supervized"], "--methods names 'supervized'; did you mean 'supervised'"),
        (["cps", "cps"], "--methods is 'cps,cps', expected different names"),
        ([""], "--methods names ''; known: "),
    ],
)
def test_names_that_are_none_are_refused(methods: list[str], words: str, tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=words):
        compare("demo", methods, [0], tmp_path)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"seeds": [0, 0]}, "--seeds is 0,0, expected different numbers"),
        ({"steps": 0}, "--steps is 0, expected 1 or more"),
        ({"overrides": {"method.weight": 1.0}}, r"--method\.weight is each method's own in a comparison"),
        ({"overrides": {"seed": 1}}, "--seed is each method's own"),
        ({"overrides": {"loader.unlabeled_batch": 4}}, r"--loader\.unlabeled_batch would make passes unequal"),
    ],
)
def test_what_would_be_unfair_is_refused(more: dict[str, Any], words: str, tmp_path: Path) -> None:
    with pytest.raises(PeersegError, match=words):
        compare("demo", ["cps"], **{"seeds": [0], "out": tmp_path, **more})


@pytest.mark.parametrize("recipe", ["demo", "voc", "voc-cutmix", "cityscapes-cutmix", "ncps-strong"])
def test_every_contender_has_what_we_recommend_whatever_the_recipe_has(recipe: str) -> None:
    for name in ("mean-teacher", "cps", "ncps", "ncps-cutmix"):
        settings = contenders()[name].settle(recipe, {"data.root": "x"} if recipe != "demo" else {}, 100)
        assert (settings.method["labels"], settings.method["counted"], settings.method["ramp"]) == (
            "eval",
            "inside",
            0.4,
        )
        assert settings.method.get("partner", "neighbor") == "neighbor"
        assert settings.networks == ()
    weight = contenders()["ncps"].settle(recipe, {"data.root": "x"} if recipe != "demo" else {}, 100).method["weight"]
    assert weight == (6.0 if recipe.startswith("city") else 1.5)


def test_evaluations_may_be_more_or_fewer() -> None:
    assert contenders()["cps"].settle("demo", {"evaluation.every": 7}, 100).evaluation["every"] == 7


def test_a_folder_does_not_hide_a_recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "demo").mkdir()
    monkeypatch.chdir(tmp_path)
    found = compare("demo", ["supervised"], [0], tmp_path / "out", steps=1, overrides=SMALLER)
    assert found.equal_steps.runs["supervised"][0].settings()["data"]["name"] == "shapes"


def test_different_networks_are_known_for_the_networks_that_come_along() -> None:
    contender = Contender("ncps-strong", {"method.name": "ncps", "method.count": 3}, (6, 3), networks={"library": []})
    with pytest.raises(
        PeersegError, match=r"ncps-strong has no different networks for network\.name 'small', expected"
    ):
        contender.settle("demo", {}, 4)


@pytest.mark.parametrize("name", sorted(contenders()))
def test_the_passes_of_every_contender_are_those_it_makes(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contender, seen = contenders()[name], {True: 0, False: 0}
    encode, learn, learning = SmallNetwork.encode, loop._learn, []

    def counted(network: SmallNetwork, x: torch.Tensor) -> list[torch.Tensor]:
        seen[torch.is_grad_enabled()] += len(x) if learning else 0
        return encode(network, x)

    def noted(*words: Any) -> None:
        learning.append(1)
        learn(*words)
        learning.clear()

    monkeypatch.setattr(SmallNetwork, "encode", counted)
    monkeypatch.setattr(loop, "_learn", noted)
    settings = contender.settle("demo", LARGER, 2 * contender.stages)
    assert settings.steps == 2
    start(settings, tmp_path / "run")
    images = 2 * settings.loader["batch"]
    assert (seen[True] / images, seen[False] / images) == contender.passes
