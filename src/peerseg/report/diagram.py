"""Figure 2 of the paper for any number of networks: what each answers, and whom that answer teaches."""

from peerseg.methods.base import check_peers

BOX, GAP = 54, 22  # height of a box, and between rows
COLUMNS = {"x": 16, "f": 130, "P": 310, "Y": 490}
WIDTHS = {"x": 54, "f": 108, "P": 54, "Y": 54}
SOLID = 'stroke="#444" stroke-width="1.4"'
DASHED = 'stroke="#999" stroke-width="1.2" stroke-dasharray="5 4"'


def peers_diagram(count: int) -> str:
    """Draw how n networks teach one another.

    Args:
        count: n, at least 2.

    Returns:
        An ``<svg>`` element: solid lines carry the image forward, the slashed ones pass no gradient, the dashed ones
        are cross supervision, from the label of one network to the prediction of another.
    """
    check_peers(count)
    width, height = COLUMNS["Y"] + WIDTHS["Y"] + 16, count * (BOX + GAP) + GAP
    rows = [GAP + k * (BOX + GAP) + BOX / 2 for k in range(count)]
    middle = height / 2
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="serif" font-size="17">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#666"/></marker></defs>',
        _box("x", middle, "x"),
    ]
    for j, y in enumerate(rows, 1):
        parts += [_box("f", y, f"f(x; θ{_sub(j)})"), _box("P", y, f"P{_sub(j)}"), _box("Y", y, f"Y{_sub(j)}")]
        parts += [_line("x", middle, "f", y), _line("f", y, "P", y), _line("P", y, "Y", y)]
        halfway = (COLUMNS["P"] + WIDTHS["P"] + COLUMNS["Y"]) / 2
        parts.append(f'<text x="{halfway}" y="{y + 6:g}" text-anchor="middle">//</text>')
        parts += [_line("Y", other, "P", y) for k, other in enumerate(rows, 1) if k != j]
    return "".join([*parts, "</svg>"]) + "\n"


def _box(column: str, y: float, text: str) -> str:
    x, width = COLUMNS[column], WIDTHS[column]
    frame = f'<rect x="{x}" y="{y - BOX / 2:g}" width="{width}" height="{BOX}" fill="#f4f6fb" {SOLID}/>'
    return f'{frame}<text x="{x + width / 2:g}" y="{y + 6:g}" text-anchor="middle">{text}</text>'


def _line(start: str, y1: float, end: str, y2: float) -> str:
    back = COLUMNS[start] > COLUMNS[end]
    x1 = COLUMNS[start] + (0 if back else WIDTHS[start])
    x2 = COLUMNS[end] + (WIDTHS[end] if back else 0)
    style = DASHED if back else SOLID
    return f'<line x1="{x1}" y1="{y1:g}" x2="{x2}" y2="{y2:g}" {style} marker-end="url(#tip)"/>'


def _sub(number: int) -> str:
    return f'<tspan font-size="11" dy="4">{number}</tspan><tspan dy="-4">&#8203;</tspan>'
