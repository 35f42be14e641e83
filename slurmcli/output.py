"""Print results as a table that fits the terminal, a wider one, JSON or YAML.

`-o wide` adds columns; `-o json` and `-o yaml` are for scripts. Nothing is printed but by this module, as texts of others
must not act on the terminal (tests/architecture/test_printing.py).
"""

import dataclasses
import enum
import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import yaml

from slurmruntime.values.visible import visible, visible_line

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

Part = str | tuple[str, str]
"""A text, or a text and its style."""

_PIPE_WIDTH = 200
"""Width in columns if the output is not a terminal: wide enough that nothing is folded."""


class Format(enum.StrEnum):
    """The values of `-o`."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"


_STYLES = {
    "RUNNING": "green",
    "COMPLETED": "green",
    "PENDING": "yellow",
    "FAILED": "red",
    "ok": "green",
    "fault": "red",
    "warning": "yellow",
    "not checked": "dim",
}
"""Words that are coloured in a cell, on a terminal only."""


@dataclasses.dataclass(frozen=True, slots=True)
class TableColumn:
    """One column: the row's field, and whether it is shown only by `-o wide`."""

    title: str
    field: str
    wide: bool = False


def console() -> "Console":
    """Return a console: colours on a terminal only (and never with NO_COLOR), unfolded lines into a pipe."""
    from rich.console import Console  # noqa: PLC0415  # scripts read JSON and need none

    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def line(*parts: Part) -> None:
    """Print a line of these parts."""
    from rich.text import Text  # noqa: PLC0415  # as above

    plain_parts = ((part, "") if isinstance(part, str) else part for part in parts)
    styled = [(visible_line(text), style) for text, style in plain_parts]
    console().print(Text.assemble(*styled))


def titled(lines: Iterable[tuple[str, str]]) -> None:
    """Print lines under each other, with their titles in front; those without a text are left out."""
    shown = [(title, text) for title, text in lines if text]
    width = max((len(title) for title, _ in shown), default=0)
    for title, text in shown:
        line("  ", (title.ljust(width), "dim"), "  ", text)


def table(
    rows: Sequence[object], columns: Sequence[TableColumn], form: Format, *, nothing: str
) -> None:
    """Print rows (dataclasses) in the format asked for; if there are none, print `nothing` to standard error."""
    match form:
        case Format.JSON | Format.YAML:
            document([plain(row) for row in rows], form)
        case Format.TABLE | Format.WIDE:
            if not rows:
                say(nothing)
                return
            console().print(draw(rows, columns, wide=form is Format.WIDE))


def draw(rows: Sequence[object], columns: Sequence[TableColumn], *, wide: bool) -> "Table":
    """Draw the table."""
    from rich.table import Table  # noqa: PLC0415  # as above

    shown = [column for column in columns if wide or not column.wide]
    grid = Table(box=None, pad_edge=False, header_style="bold", show_edge=False)
    for column in shown:
        grid.add_column(column.title, overflow="fold", no_wrap=column is not shown[-1])
    for row in rows:
        grid.add_row(*(_cell(getattr(row, column.field)) for column in shown))
    return grid


def document(content: object, form: Format) -> None:
    """Print data for a script."""
    if form is Format.YAML:
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True)
        if (
            visible(text) != text
        ):  # YAML escapes control characters itself, but no marks of direction
            text = yaml.safe_dump(content, sort_keys=False)
    else:
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    out(text, end="")


def out(text: str, *, end: str = "\n") -> None:
    """Print a text to standard output."""
    sys.stdout.write(visible(text) + end)
    sys.stdout.flush()  # a closed pipe shows here, not when Python ends


def say(text: str) -> None:
    """Print a text for the person, not for scripts: to standard error."""
    sys.stderr.write(f"{visible(text)}\n")


def plain(row: Any) -> dict[str, object]:
    """Return a row as JSON types."""
    return {key: _plain(value) for key, value in dataclasses.asdict(row).items()}


def number(value: object) -> str:
    """Format a number of slurmrestd, which comes as `{"set": …, "number": …}`."""
    return str(value["number"]) if isinstance(value, dict) and "number" in value else str(value)


def duration(span: timedelta) -> str:
    """Format a span as kubectl formats ages: two units at most."""
    seconds = max(int(span.total_seconds()), 0)
    units = ((86400, "d"), (3600, "h"), (60, "m"), (1, "s"))
    for n, (size, unit) in enumerate(units):
        if seconds >= size:
            rest = seconds % size // units[n + 1][0] if n + 1 < len(units) else 0
            return f"{seconds // size}{unit}{f'{rest}{units[n + 1][1]}' if rest else ''}"
    return "0s"


def _plain(value: object) -> object:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list() | tuple() | set() | frozenset():
            return [_plain(item) for item in value]
        case dict():
            return {str(key): _plain(item) for key, item in value.items()}
        case timedelta():
            return value.total_seconds()
        case _:
            return str(value)


def _cell(value: object) -> "Text":
    from rich.text import Text  # noqa: PLC0415  # as above

    match value:
        case None | "":
            text = "-"
        case list() | tuple():
            text = ",".join(map(str, value)) or "-"
        case datetime():
            text = f"{value:%m-%d %H:%M}"
        case timedelta():
            text = duration(value)
        case _:
            text = str(value)
    return Text(visible_line(text), style=_STYLES.get(text, ""))
