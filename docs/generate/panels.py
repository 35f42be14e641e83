"""Grafana dashboards: panels in rows, on Grafana's grid."""

from collections.abc import Sequence
from dataclasses import dataclass

_WIDTH = 24
"""Grafana's grid."""
_DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class Query:
    """One line of a panel."""

    legend: str
    expression: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph, or one number."""

    title: str
    queries: Sequence[Query]
    unit: str = "short"
    kind: str = "timeseries"
    """timeseries or stat."""
    width: int = 8
    height: int = 7


@dataclass(frozen=True, slots=True)
class Row:
    """A heading, and what is below."""

    title: str
    panels: Sequence[Panel]


def dashboard(
    title: str, uid: str, tags: Sequence[str], rows: Sequence[Row], variables: Sequence[object] = ()
) -> dict[str, object]:
    """Return a dashboard as Grafana imports it.

    Args:
        title: Its title.
        uid: What links find it by.
        tags: Its tags.
        rows: What it shows.
        variables: Its variables, beside the data source.
    """
    datasource = {"name": "datasource", "type": "datasource", "query": "prometheus"}
    return {
        "uid": uid,
        "title": title,
        "tags": list(tags),
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [datasource, *variables]},
        "panels": _placed(rows),
    }


def _placed(rows: Sequence[Row]) -> list[dict[str, object]]:
    """Return the panels on Grafana's grid, row by row from left to right."""
    placed: list[dict[str, object]] = []
    y = 0
    for row in rows:
        placed.append(
            {
                "id": len(placed) + 1,
                "type": "row",
                "title": row.title,
                "collapsed": False,
                "panels": [],
                "gridPos": {"x": 0, "y": y, "w": _WIDTH, "h": 1},
            }
        )
        y, x, height = y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > _WIDTH:
                y, x = y + height, 0
            placed.append(_panel(len(placed) + 1, panel, x, y))
            x, height = x + panel.width, panel.height
        y += height
    return placed


def _panel(number: int, panel: Panel, x: int, y: int) -> dict[str, object]:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "datasource": _DATASOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + n),
                "datasource": _DATASOURCE,
                "expr": query.expression,
                "legendFormat": query.legend,
            }
            for n, query in enumerate(panel.queries)
        ],
    }
