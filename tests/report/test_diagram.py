"""Figure 2 for any n."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from peerseg.errors import PeersegError
from peerseg.report.diagram import peers_diagram

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("count", [2, 3, 5, 8])
def test_every_network_answers_and_is_taught_by_every_other(count: int) -> None:
    figure = ElementTree.fromstring(peers_diagram(count))
    lines = figure.findall(f"{SVG}line")
    dashed = [line for line in lines if "stroke-dasharray" in line.attrib]
    texts = ["".join(text.itertext()).replace("\u200b", "") for text in figure.findall(f"{SVG}text")]

    assert len(lines) - len(dashed) == 3 * count
    assert len({(line.attrib["y1"], line.attrib["y2"]) for line in dashed}) == count * (count - 1) == len(dashed)
    assert all(line.attrib["y1"] != line.attrib["y2"] for line in dashed), "none teaches itself"
    assert texts.count("//") == count
    assert {f"f(x; θ{count})", f"P{count}", f"Y{count}", "x"} <= set(texts)


def test_the_figure_of_the_documentation_is_this_one() -> None:
    drawn = Path(__file__).parents[2] / "docs" / "figure-2-n3.svg"
    assert drawn.read_text(encoding="utf8") == peers_diagram(3)


def test_one_network_has_no_peers() -> None:
    with pytest.raises(PeersegError, match="n-CPS was given 1 network, expected at least 2"):
        peers_diagram(1)
