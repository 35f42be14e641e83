"""Draws the dashboard's panels from the data of a Prometheus, for who has no Grafana at hand: the docs, and whoever changes it.

`python -m deploy.picture http://127.0.0.1:9090 > docs/images/dashboard.svg` draws the last five minutes.
"""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

import httpx

from docs.generate.dashboard import ROWS
from docs.generate.panels import Panel

_CELL, _ROW_PX = 50, 30
"""Pixels of one cell of Grafana's grid."""
_SPAN_S, _STEP_S = 300, 2
_COLOURS = ("#00695c", "#b35900", "#3949ab", "#ad1457", "#558b2f", "#6a1b9a", "#00838f", "#5d4037")
_UNITS: Mapping[str, Sequence[tuple[float, str]]] = {
    "s": ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"), (0.001, "ms")),
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")),
}
_LEGENDS = 5
"""Lines named below a graph; more would not be readable."""


@dataclass(frozen=True, slots=True)
class Line:
    """One series: its name and its points (Unix time in seconds, value)."""

    name: str
    points: Sequence[tuple[float, float]]


def lines(url: str, panel: Panel, now: float) -> list[Line]:
    """Ask for what a panel shows.

    Raises:
        httpx.HTTPError: Prometheus did not answer, or refused the query.
    """
    found = []
    for query in panel.queries:
        answer = httpx.get(
            f"{url}/api/v1/query_range",
            params={
                "query": query.expression.replace("$__rate_interval", "20s"),
                "start": now - _SPAN_S,
                "end": now,
                "step": _STEP_S,
            },
            trust_env=False,
        ).raise_for_status()
        for series in answer.json()["data"]["result"]:
            name = query.legend
            for label, value in series["metric"].items():
                name = name.replace(f"{{{{{label}}}}}", value)
            points = [(at, float(value)) for at, value in series["values"] if value != "NaN"]
            found.append(Line(name, points))
    return found


def drawn(panel: Panel, found: Sequence[Line], now: float, *, x: int, y: int) -> str:
    """Draw one panel at a place."""
    width, height = panel.width * _CELL - 8, panel.height * _ROW_PX - 8
    parts = [
        f'<g transform="translate({x},{y})"><rect class="panel" width="{width}" height="{height}"/>',
        f'<text class="title" x="10" y="20">{escape(panel.title)}</text>',
    ]
    last = [line.points[-1][1] for line in found if line.points]
    if panel.kind == "stat":
        text = _number(last[0], panel.unit) if last else "no data"
        parts.append(f'<text class="stat" x="{width / 2}" y="{height / 2 + 22}">{text}</text></g>')
        return "".join(parts)
    top = max((value for line in found for _, value in line.points), default=0) or 1
    left, bottom = 60, height - 14 * min(len(found), _LEGENDS) - 12
    parts.append(f'<text class="axis" x="{left - 6}" y="38">{_number(top, panel.unit)}</text>')
    parts.append(f'<text class="axis" x="{left - 6}" y="{bottom}">0</text>')
    parts.append(f'<path class="axis" d="M{left} 32V{bottom}H{width - 10}"/>')
    for n, line in enumerate(found):
        colour = _COLOURS[n % len(_COLOURS)]
        path = " ".join(
            f"{left + (at - now + _SPAN_S) / _SPAN_S * (width - left - 10):.1f},"
            f"{bottom - value / top * (bottom - 34):.1f}"
            for at, value in line.points
        )
        parts.append(f'<polyline points="{path}" stroke="{colour}"/>')
        if n < _LEGENDS:
            said = (
                f"{line.name} {_number(line.points[-1][1], panel.unit)}"
                if line.points
                else line.name
            )
            parts.append(
                f'<text x="{left}" y="{bottom + 14 * (n + 1)}" fill="{colour}">{escape(said)}</text>'
            )
    return "".join((*parts, "</g>"))


def picture(url: str, now: float) -> str:
    """Draw all rows."""
    parts, y = [], 0
    for row in ROWS:
        parts.append(f'<text class="row" x="4" y="{y + 22}">{escape(row.title)}</text>')
        y, x, height = y + _ROW_PX, 0, 0
        for panel in row.panels:
            if x + panel.width * _CELL > 24 * _CELL:
                y, x = y + height, 0
            parts.append(drawn(panel, lines(url, panel, now), now, x=x, y=y))
            x, height = x + panel.width * _CELL, panel.height * _ROW_PX
        y += height
    style = (
        "svg{background:#fff}text{font:11px system-ui,sans-serif}.title{font-weight:600;font-size:13px}"
        ".row{font-weight:700;font-size:15px}.stat{font-size:26px;text-anchor:middle;fill:#00695c}"
        ".axis{text-anchor:end;fill:#777}path.axis{stroke:#bbb;fill:none}"
        ".panel{fill:#fafafa;stroke:#ddd}polyline{fill:none;stroke-width:1.5}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {24 * _CELL} {y}">'
    return f"{head}<style>{style}</style>{''.join(parts)}</svg>\n"


def _number(value: float, unit: str) -> str:
    """A number as people read it."""
    for size, name in _UNITS.get(unit, ()):
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g}" + ("/s" if unit == "reqps" else "")


if __name__ == "__main__":
    sys.stdout.write(picture(sys.argv[1], time.time()))  # noqa: TID251  # a picture of now
