"""The benchmarks: both sides of a comparison learn the same, scales are right, the page takes what was measured."""

import multiprocessing
from pathlib import Path

import pytest
import torch

from benchmarks import gradients, growth, loading, memory, page, speed
from benchmarks.__main__ import PARTS, main
from benchmarks.measuring import Sample, counting_saved, interleaved, resident_growth
from benchmarks.scenes import Scene
from peerseg.errors import PeersegError
from peerseg.networks import SmallNetwork
from peerseg.report.table import Table

TINY = Scene("tiny", lambda: SmallNetwork(3, width=4, dropout=0.3), 3, 16, 2, torch.float64)
MOST = 1e-12  # of the greatest gradient


@pytest.mark.parametrize("algorithm", ["plain", "CutMix"])
@pytest.mark.parametrize("count", [2, 3, 5])
def test_both_sides_have_the_same_labels_gradients_and_statistics(algorithm: str, count: int) -> None:
    labels, apart, statistics = gradients.compare(TINY, count, algorithm)
    assert labels
    assert apart <= MOST
    assert statistics


@pytest.mark.long
@pytest.mark.parametrize("algorithm", ["plain", "CutMix"])
@pytest.mark.parametrize("count", gradients.COUNTS)
def test_so_it_is_with_the_network_of_the_paper(algorithm: str, count: int) -> None:
    labels, apart, statistics = gradients.compare(gradients.PAPER, count, algorithm)
    assert labels
    assert apart <= MOST
    assert statistics


def test_graphs_of_our_steps_hold_what_one_network_needs_whatever_n_is() -> None:
    alone = memory.saved_bytes(TINY, 1, "supervised")
    few, many = ({kind: memory.saved_bytes(TINY, n, kind) for kind in memory.KINDS} for n in (2, 8))
    for kind in ("CutMix", "plain, lean"):
        assert many[kind] <= 1.05 * few[kind]
        assert few[kind] <= 1.05 * alone
    assert many["naive CutMix"] > 3.5 * few["naive CutMix"]
    assert many["plain, not lean"] < 0.6 * many["naive plain"]


def test_held_bytes_are_those_of_the_graph() -> None:
    weight = torch.nn.Linear(4, 4, bias=False)
    with counting_saved([weight]) as saved:
        x = torch.randn(2, 4)
        y = weight(x).exp()  # holds x once, and its own result
        assert saved.now == saved.peak == x.nbytes + y.nbytes
        y.sum().backward()
        del y
    assert saved.now == 0
    assert saved.peak == 2 * x.nbytes


def test_resident_growth_is_seen_in_a_fresh_process() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        assert 200 < fresh.apply(_grow) < 280


def _grow() -> float:
    return resident_growth(lambda: torch.ones(256, 2**18).sum())


def test_actions_are_taken_in_turn_and_warmed_up() -> None:
    order: list[str] = []
    taken = interleaved({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, 2)
    assert order == ["a", "b"] * 3
    assert {name: len(sample.values) for name, sample in taken.items()} == {"a": 2, "b": 2}


def test_a_ratio_is_taken_repetition_by_repetition() -> None:
    assert str(Sample((1.0, 2.0, 9.0)).over(Sample((2.0, 2.0, 3.0)))) == "1.00 (0.50 to 3.00)"


def test_a_law_is_a_straight_line_in_words() -> None:
    assert growth.law([1, 2, 3], [5, 7, 9], "ms") == "3.0 ms and 2.00 ms more for each; 100.0% explained"
    assert growth.law([1, 2, 3], [4.0, 4.01, 4.0], "MiB") == "4.0 MiB, the same everywhere"


def test_both_pipelines_make_a_view(tmp_path: Path) -> None:
    path = tmp_path / "photograph.jpg"
    loading.write_photograph(path)
    assert loading.ours(path, 0).shape == tuple(loading.straightforward(path, 0).shape) == (3, 512, 512)
    assert 50_000 < path.stat().st_size < 200_000, "as detailed as a photograph"


def test_the_page_takes_what_was_measured(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(page, "PAGE", tmp_path / "costs.md")
    page.PAGE.write_text("before\n<!-- speed -->\nold\n<!-- end -->\nafter\n")
    page.write_table("speed", Table(("what", "ratio"), (("loss", "0.10"),)))
    assert page.PAGE.read_text() == (
        "before\n<!-- speed -->\n\n| what | ratio |\n| --- | ---: |\n| loss | 0.10 |\n\n<!-- end -->\nafter\n"
    )
    with pytest.raises(PeersegError, match="has 0 blocks 'memory', expected one"):
        page.write_block("memory", "")


def test_every_part_has_its_block() -> None:
    text = page.PAGE.read_text(encoding="utf8")
    blocks = [part for part in PARTS if part != "growth"] + [f"growth-{axis}" for axis in growth.AXES]
    assert all(text.count(f"<!-- {block} -->") == 1 for block in blocks)
    with pytest.raises(PeersegError, match="'sped' is no part of the benchmarks; did you mean 'speed'"):
        main(["sped"])


@pytest.mark.parametrize("rows", [speed.loss_rows, speed.vote_rows])
def test_what_is_timed_runs(monkeypatch: pytest.MonkeyPatch, rows: object) -> None:
    monkeypatch.setattr(speed, "REPETITIONS", 1)
    monkeypatch.setattr(speed, "paper", lambda **_: Scene("tiny", TINY.make, 3, 16, 2))
    monkeypatch.setattr(speed, "lite", lambda: Scene("tiny", TINY.make, 3, 16, 2))
    assert callable(rows)
    assert len(rows()) == 2
