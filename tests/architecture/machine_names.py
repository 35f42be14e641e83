"""Every name that a program of somebody else's may rely on, read from the sources.

`python -m tests.architecture.machine_names` prints them as JSON. Run it on an older commit to see what has changed.
"""

import ast
import itertools
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import typer.main

from slurmcli import plugin
from slurmcli import program as cli
from tests.architecture.sources import PACKAGES, PRODUCT, ROOT, files, parsed, strings

_KEY = re.compile(r"[a-z0-9-]+(\.[a-z0-9-]+)+/[A-Za-z0-9._-]*")
_CAMEL = re.compile(r"[A-Z][a-z]+([A-Z][A-Za-z0-9]*)*")
_LOG_METHODS = ("debug", "info", "warning", "error", "exception")


@cache
def machine_names() -> Mapping[str, Sequence[str]]:
    """Names by what they are names of, sorted.

    `keys`: annotations, labels, taints, finalizers, condition types. `reasons`: CamelCase words, among them all reasons
    of conditions and Events. `log_events` and `log_fields`; `metrics` (with their labels), `settings`, `commands` (with
    their options), `alerts`, `exit_codes`, `actions` (class names that are label values and log fields).
    """
    found = {
        "keys": _matching(_KEY),
        "reasons": _matching(_CAMEL),
        "log_events": (event for event, _ in _log_calls()),
        "log_fields": (name for _, names in _log_calls() for name in names),
        "metrics": _rows("docs/metrics.md"),
        "settings": _rows("docs/settings.md"),
        "commands": (
            *_options("slurm-bridge", cli.with_plugins()),
            *_options("kubectl slurm", plugin.app()),
        ),
        "alerts": _alerts(),
        "exit_codes": _exit_codes(),
        "actions": _actions(),
    }
    return {kind: sorted(set(names)) for kind, names in found.items()}


def _matching(pattern: re.Pattern[str]) -> Iterator[str]:
    yield from filter(pattern.fullmatch, _strings())


@cache
def _strings() -> frozenset[str]:
    return frozenset(text for path in files(*PRODUCT) for text in strings(parsed(path)))


def _log_calls() -> Iterator[tuple[str, Sequence[str]]]:
    for path in files(*PACKAGES):
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Call(
                    func=ast.Attribute(value=ast.Name(id="_log"), attr=method),
                    args=[ast.Constant(value=str(event)), *_],
                    keywords=keywords,
                ) if method in _LOG_METHODS:
                    yield event, [word.arg for word in keywords if word.arg]


def _rows(page: str) -> Iterator[str]:
    """First cells of a generated page's tables, with the labels where the page names them."""
    for line in (ROOT / page).read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| `"):
            name = cells[0].strip("` |")
            labels = cells[2] if page.endswith("metrics.md") and len(cells) > 2 else ""
            yield f"{name} {labels}".strip()


def _options(name: str, app: typer.Typer) -> Iterator[str]:
    yield from _of_command(name, typer.main.get_command(app))


def _of_command(name: str, command: Any) -> Iterator[str]:
    yield name
    for option in command.params:
        for spelling in (*option.opts, *option.secondary_opts):
            yield f"{name} {spelling}"
    for below, inner in getattr(command, "commands", {}).items():
        yield from _of_command(f"{name} {below}", inner)


def _alerts() -> Iterator[str]:
    for path in (ROOT / "deploy").rglob("*.yaml"):
        yield from re.findall(r"alert: (\w+)", path.read_text())


def _exit_codes() -> Iterator[str]:
    """Constants of the commands whose docstring is "Exit code."."""
    for path in files("slurmcli"):
        body = parsed(path).body
        for code, text in itertools.pairwise(body):
            if not isinstance(code, ast.Assign) or not isinstance(text, ast.Expr):
                continue
            if not isinstance(code.value, ast.Constant) or not isinstance(text.value, ast.Constant):
                continue
            if str(text.value.value).startswith("Exit code"):
                name = path.parent.name if path.stem == "command" else path.stem
                yield f"{name} {code.value.value!r}"


def _actions() -> Iterator[str]:
    """Classes of actions: `decisions_total{action}` and the log name them."""
    for path in files("bridge/domain"):
        if path.stem.endswith("actions"):
            for node in parsed(path).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    yield node.name


if __name__ == "__main__":
    json.dump(machine_names(), sys.stdout, indent=1)
    sys.stdout.write("\n")
