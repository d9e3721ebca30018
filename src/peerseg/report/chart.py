"""Line charts as plain SVG: no library, no script, readable in any page."""

import html
import math
from collections.abc import Mapping, Sequence

Points = Sequence[tuple[float, float]]

COLORS = ("#c62828", "#1565c0", "#2e7d32", "#ef6c00", "#6a1b9a", "#00838f", "#5d4037", "#455a64")
WIDTH, HEIGHT = 560, 300
LEFT, RIGHT, TOP, BOTTOM = 48, 150, 16, 40


def line_chart(series: Mapping[str, Points], *, across: str, up: str) -> str:
    """Draw lines over a common scale.

    Args:
        series: Name -> (x, y) points.
        across: What the x axis is.
        up: What the y axis is.

    Returns:
        An ``<svg>`` element.
    """
    points = [point for line in series.values() for point in line]
    if not points:
        return ""
    x_ticks = ticks(min(x for x, _ in points), max(x for x, _ in points))
    y_ticks = ticks(min(y for _, y in points), max(y for _, y in points))

    def place(x: float, y: float) -> tuple[float, float]:
        right = (x - x_ticks[0]) / (x_ticks[-1] - x_ticks[0])
        high = (y - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
        return LEFT + right * (WIDTH - LEFT - RIGHT), HEIGHT - BOTTOM - high * (HEIGHT - TOP - BOTTOM)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">'
    ]
    for y in y_ticks:
        (x1, y1), (x2, _) = place(x_ticks[0], y), place(x_ticks[-1], y)
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y1:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{x1 - 6:.1f}" y="{y1 + 4:.1f}" text-anchor="end">{y:g}</text>')
    for x in x_ticks:
        x1, y1 = place(x, y_ticks[0])
        parts.append(f'<text x="{x1:.1f}" y="{y1 + 16:.1f}" text-anchor="middle">{x:g}</text>')
    for k, (name, line) in enumerate(series.items()):
        color = COLORS[k % len(COLORS)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="1.8"/>')
        y = TOP + 10 + 16 * k
        parts.append(f'<rect x="{WIDTH - RIGHT + 12}" y="{y - 8}" width="10" height="10" fill="{color}"/>')
        parts.append(f'<text x="{WIDTH - RIGHT + 28}" y="{y + 1}">{html.escape(name)}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(f'<text x="{middle}" y="{HEIGHT - 6}" text-anchor="middle">{html.escape(across)}</text>')
    parts.append(
        f'<text x="12" y="{HEIGHT / 2}" transform="rotate(-90 12 {HEIGHT / 2})" text-anchor="middle">{html.escape(up)}</text>'
    )
    return "".join([*parts, "</svg>"])


def ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Round numbers that span a range.

    Args:
        low: Least value.
        high: Greatest value.
        count: About how many intervals.

    Returns:
        At least two rising numbers; the first is at most ``low``, the last at least ``high``.
    """
    span = high - low or abs(high) or 1.0
    rough = span / count
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough)
    first = math.floor(low / step)
    last = max(math.ceil(high / step), first + 1)
    return [round(k * step, 10) for k in range(first, last + 1)]
