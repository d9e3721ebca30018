"""Charts: well-formed SVG on round scales."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from peerseg.report.chart import HEIGHT, WIDTH, line_chart, ticks

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("low", [-3.0, 0.0, 0.001, 17.0, 99.5])
@pytest.mark.parametrize("span", [0.0, 1e-4, 0.7, 3.0, 800.0, 1e6])
def test_ticks_are_round_rise_and_span_the_range(low: float, span: float) -> None:
    found = ticks(low, low + span)
    steps = {float(f"{later - tick:.6g}") for tick, later in pairwise(found)}

    assert found[0] <= low
    assert found[-1] >= low + span
    assert 2 <= len(found) <= 8
    assert {f"{step:e}"[0] for step in steps} <= set("125"), "the steps are 1, 2 or 5 of some power of ten"
    assert len({f"{step:.3g}" for step in steps}) == 1


def test_a_range_in_numbers() -> None:
    assert ticks(0, 100) == [0, 20, 40, 60, 80, 100]
    assert ticks(61.2, 68.9) == [60, 62, 64, 66, 68, 70]


def test_lines_lie_where_their_points_are() -> None:
    chart = ElementTree.fromstring(line_chart({"sv": [(0, 0), (100, 50), (100, 100)]}, across="step", up="mIoU"))
    line = chart.find(f"{SVG}polyline")
    assert line is not None
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    (x0, y0), (x1, y1), (x2, y2) = points

    assert x0 < x1 == x2
    assert y0 > y1 > y2, "up is smaller"
    assert y1 == pytest.approx((y0 + y2) / 2, abs=0.1)
    assert all(0 <= x <= WIDTH and 0 <= y <= HEIGHT for x, y in points)


def test_every_series_has_a_line_a_color_and_a_name() -> None:
    names = [f"arm {k}" for k in range(10)]
    chart = ElementTree.fromstring(line_chart({name: [(0, 1), (1, 2)] for name in names}, across="step", up="mIoU"))
    texts = [text.text for text in chart.iter(f"{SVG}text")]

    assert len(chart.findall(f"{SVG}polyline")) == 10
    assert set(names) | {"step", "mIoU"} <= set(texts)


def test_names_are_escaped() -> None:
    svg = line_chart({"<b>&": [(0, 1)]}, across="<x>", up="a & b")
    texts = {text.text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}

    assert {"<b>&", "<x>", "a & b"} <= texts


def test_one_point_and_equal_points_can_be_drawn() -> None:
    for points in ([(4.0, 61.0)], [(1.0, 0.0), (2.0, 0.0)]):
        svg = line_chart({"sv": points}, across="step", up="mIoU")
        assert re.search(r'points="[\d., ]+"', svg)
        assert "nan" not in svg


def test_nothing_to_draw_is_no_chart() -> None:
    assert line_chart({}, across="step", up="mIoU") == ""
    assert line_chart({"sv": []}, across="step", up="mIoU") == ""
