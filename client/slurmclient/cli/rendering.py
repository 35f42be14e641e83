"""Printing objects as a table, JSON or YAML."""

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_ACTING: Final = re.compile(
    r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Control characters but for line feeds, separators of lines and paragraphs, and marks that change the writing direction."""


class Output(StrEnum):
    """The formats."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def plain(value: object) -> Any:
    """Return a value in JSON's types: sets as sorted lists, times in ISO 8601, "infinite" for inf."""
    match value:
        case msgspec.Struct():
            names = {
                field_info.name: field_info.encode_name
                for field_info in msgspec.structs.fields(value)
            }
            return {wire: plain(getattr(value, name)) for name, wire in names.items()}
        case dict():
            return {str(key): plain(item) for key, item in value.items()}
        case frozenset() | set():
            return sorted(str(item) for item in value)
        case list() | tuple():
            return [plain(item) for item in value]
        case datetime():
            return value.isoformat()
        case float() if value == math.inf:
            return "infinite"
        case _:
            return value


def as_json(value: object) -> str:
    """Return indented JSON."""
    return json.dumps(plain(value), indent=2, ensure_ascii=False)


def as_yaml(value: object) -> str:
    """Return YAML; scalars are written as in JSON, which is valid YAML."""
    return "\n".join(_yaml(plain(value)))


def _yaml(value: Any) -> Iterator[str]:
    match value:
        case dict() if value:
            for key, item in value.items():
                yield from _yaml_item(
                    f"{json.dumps(key) if not key.isidentifier() else key}:", item
                )
        case list() if value:
            for item in value:
                lines = list(_yaml(item))
                yield f"- {lines[0]}"
                yield from (f"  {line}" for line in lines[1:])
        case _:
            yield json.dumps(value, ensure_ascii=False)


def _yaml_item(head: str, value: Any) -> Iterator[str]:
    if isinstance(value, dict | list) and value:
        yield head
        yield from (f"  {line}" for line in _yaml(value))
    else:
        yield f"{head} {json.dumps(value, ensure_ascii=False)}"


def table(objects: Iterable[object], columns: Sequence[str]) -> Table:
    """Return a table with a row for each object; a column is a field, such as `time.start`."""
    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        rows.add_column(column, overflow="fold")
    for item in objects:
        # Texts are untrusted: a job's name may be `[/x]`, which is markup, or contain terminal commands.
        # A line feed would begin a line that looks like another object's.
        texts = (visible(cell(field(item, column))).replace("\n", "\\n") for column in columns)
        rows.add_row(*map(Text, texts))
    return rows


def visible(text: str) -> str:
    """Return a text that does nothing to a terminal: control characters, and those that change the writing direction, are escaped as in JSON."""
    return _ACTING.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def out(text: str) -> None:
    """Print a text."""
    print(visible(text), flush=True)


def say(text: str) -> None:
    """Print a text for the person to standard error."""
    print(visible(f"slurmc: {text}"), file=sys.stderr)


def field(value: object, path: str) -> object:
    """Return the value at a dotted path; None if there is none."""
    for name in path.split("."):
        value = getattr(value, name, None)
    return value


def cell(value: object) -> str:
    """Return a value as a table shows it; times are local."""
    match value:
        case None:
            return "-"
        case frozenset() | list() | tuple():
            return ",".join(sorted(str(item) for item in value)) or "-"
        case datetime():
            return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
        case float() if value == math.inf:
            return "infinite"
        case float():
            return f"{value:g}"
        case _:
            return str(value) or "-"


def show(objects: object, columns: Sequence[str], output: Output) -> None:
    """Print a list of objects, or one object."""
    match output:
        case Output.JSON:
            out(as_json(objects))
        case Output.YAML:
            out(as_yaml(objects))
        case Output.TABLE:
            Console().print(table(objects if isinstance(objects, list) else [objects], columns))
