"""The demo: three arms at equal steps, a verdict that claims no more than it knows, and one page."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import TINY
from peerseg import demo as module
from peerseg.cli import main
from peerseg.demo import arms, verdict_sentence
from peerseg.experiment.results import Difference, Study
from peerseg.experiment.settings import Settings, settings_of

ARMS = ["supervised", "supervised-ensemble", "ncps"]
VOTES = ["single", "net2", "net3", "mc", "sv", "hv"]
SMALLER = {name: value for name, value in TINY.items() if name not in ("steps", "evaluation.every")}


def smaller(
    recipe: str, overrides: dict[str, Any] | None = None, protocol: str | None = None
) -> tuple[Settings, tuple[str, ...]]:
    """The demo recipe with tiny scenes and networks."""
    return settings_of(recipe, SMALLER | (overrides or {}), protocol)


@pytest.fixture(scope="module", autouse=True)
def _smaller() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "settings_of", smaller)
        yield


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("out") / "demo"
    assert main(["demo", "--out", str(path), "--steps", "2"]) == 0
    return path


def test_the_verdict_has_what_others_rely_on(out: Path) -> None:
    verdict = json.loads((out / "verdict.json").read_text())
    means = {arm: list(found["miou"]) for arm, found in verdict["arms"].items()}

    assert means == {"supervised": ["single"], "supervised-ensemble": VOTES, "ncps": VOTES}
    assert (verdict["steps"], verdict["seed"], verdict["seeds"], verdict["interval"]) == (2, 0, [0], None)
    assert (
        verdict["gain"] == verdict["arms"]["ncps"]["miou"]["sv"] - verdict["arms"]["supervised-ensemble"]["miou"]["sv"]
    )
    assert all(0 <= value <= 100 for found in verdict["arms"].values() for value in found["miou"].values())


def test_means_and_the_gain_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    votes = {"ncps": {"single": 50.0, "sv": 60.0}, "supervised-ensemble": {"single": 40.0, "sv": 56.5}}
    scores = {
        arm: {seed: {vote: {"miou": value + seed} for vote, value in found.items()} for seed in (0, 1)}
        for arm, found in {"supervised": {"single": 33.0}, **votes}.items()
    }
    scores["ncps"][1]["sv"]["miou"] = 64.0
    study = Study({arm: dict.fromkeys((0, 1)) for arm in ARMS}, scores)  # type: ignore[arg-type]
    monkeypatch.setattr(module, "run_study", lambda *_, **__: study)
    monkeypatch.setattr(module, "report_study", lambda *_, **__: None)
    module.demo(tmp_path, (0, 1), steps=2)
    verdict = json.loads((tmp_path / "verdict.json").read_text())

    assert {arm: found["miou"] for arm, found in verdict["arms"].items()} == {
        **{"supervised": {"single": 33.5}, "supervised-ensemble": {"single": 40.5, "sv": 57.0}},
        **{"ncps": {"single": 50.5, "sv": 62.0}},
    }
    # 3.5 and 6.5: mean 5, half width 12.7062 * 1.5.
    assert verdict["gain"] == 5.0
    assert verdict["interval"] == pytest.approx([5 - 19.0593, 5 + 19.0593])
    assert verdict["verdict"].startswith("These seeds cannot tell")


def test_the_page_is_self_contained_and_carries_the_verdict(out: Path) -> None:
    page = (out / "report.html").read_text(encoding="utf8")
    sources = re.findall(r'<img src="([^"]{0,22})', page)

    assert set(re.findall(r"https?://[^\s\"'<)]*", page)) == {"http://www.w3.org/2000/svg"}
    assert len(sources) == 2 * 7
    assert set(sources) == {"data:image/png;base64,"}
    assert f'<p class="verdict">{json.loads((out / "verdict.json").read_text())["verdict"]}</p>' in page
    assert all(f"<td>{arm}</td>" in page for arm in ARMS)


def test_a_demo_again_reads_its_runs_and_prints_the_same(
    out: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fit(*_: Any) -> None:
        raise AssertionError("nothing was to be trained")

    monkeypatch.setattr("peerseg.experiment.running.fit", fit)
    assert main(["demo", "--out", str(out), "--steps", "2"]) == 0
    shown = capsys.readouterr().out
    verdict = json.loads((out / "verdict.json").read_text())

    assert shown.splitlines()[0].split() == ["arm", *VOTES]
    for arm in ARMS:
        cells = [verdict["arms"][arm]["miou"].get(vote) for vote in VOTES]
        words = [arm, *("-" if cell is None else f"{cell:.1f}" for cell in cells)]
        assert words in [line.split() for line in shown.splitlines()]
    assert verdict["verdict"] in shown
    assert str(out / "report.html") in shown


def test_json_is_the_verdict_alone(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(out), "--steps", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((out / "verdict.json").read_text())


def test_more_seeds_give_means_and_an_interval(out: Path, tmp_path: Path) -> None:
    (tmp_path / "demo").symlink_to(out)
    assert main(["demo", "--out", str(tmp_path / "demo"), "--steps", "2", "--seeds", "0,1"]) == 0
    verdict = json.loads((out / "verdict.json").read_text())
    low, high = verdict["interval"]

    assert verdict["seeds"] == [0, 1]
    assert (low + high) / 2 == pytest.approx(verdict["gain"])
    assert low < high
    assert "2 seeds; 95% interval" in verdict["verdict"]


def test_a_demo_of_other_steps_wants_another_folder(out: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(out), "--steps", "3"]) == 2
    assert "steps: results are never mixed, choose another --out" in capsys.readouterr().err


def test_three_arms_differ_in_the_method_alone() -> None:
    chosen = arms(7)

    assert list(chosen) == ARMS
    assert [(s.method["name"], s.method["count"]) for s in chosen.values()] == [
        *(("supervised", 1), ("supervised", 3), ("ncps-cutmix", 3))
    ]
    assert {s.steps for s in chosen.values()} == {7}
    for section in ("data", "network", "optimizer", "loader", "evaluation", "placement"):
        assert len({str(getattr(s, section)) for s in chosen.values()}) == 1


def test_a_protocol_changes_the_third_arm() -> None:
    assert arms(7, "paper")["ncps"].method["partner"] == "own"
    assert arms(7, "paper")["supervised"] == arms(7)["supervised"]


def test_evaluations_are_as_many_whatever_the_steps() -> None:
    assert {arms(steps)["ncps"].evaluation["every"] for steps in (1, 9, 10, 19)} == {1}
    assert arms(100)["ncps"].evaluation["every"] == 10


@pytest.mark.parametrize(
    ("values", "start"),
    [
        ((2.0,), "The unlabeled images helped: +2.0 points of mean IoU over the supervised ensemble"),
        ((-2.0,), "The unlabeled images did not help: -2.0 points"),
        ((0.0,), "The unlabeled images did not help: +0.0 points"),
        ((2.0, 2.2, 2.1), "The unlabeled images helped: +2.1 points"),
        ((-2.0, -2.2, -2.1), "The unlabeled images did harm: -2.1 points"),
        ((2.0, -1.0, 0.5), "These seeds cannot tell whether the unlabeled images helped: +0.5 points"),
        ((1.0, 3.0), "These seeds cannot tell whether the unlabeled images helped: +2.0 points"),
    ],
)
def test_the_sentence_claims_no_more_than_it_knows(values: tuple[float, ...], start: str) -> None:
    sentence = verdict_sentence(Difference(values), 800)

    assert sentence.startswith(start)
    assert "800 steps each" in sentence
    assert ("One seed is an example, no proof" in sentence) == (len(values) == 1)
    assert ("95% interval" in sentence) == (len(values) > 1)
    assert ("Ship the supervised ensemble" in sentence) == ("harm" in sentence)


def test_the_interval_in_the_sentence_is_that_of_the_gain() -> None:
    # Mean 2.1, standard deviation 0.1, half width 4.3027 * 0.1 / sqrt(3) = 0.25.
    assert "95% interval +1.9 to +2.3)" in verdict_sentence(Difference((2.0, 2.2, 2.1)), 800)


@pytest.mark.parametrize("seeds", ["one", "0;1", "", "0,", "1.5"])
def test_seeds_that_are_none_are_refused(seeds: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path / "demo"), "--seeds", seeds]) == 2
    assert capsys.readouterr().err == f"peerseg: --seeds is {seeds!r}, expected whole numbers such as 0,1,2\n"
