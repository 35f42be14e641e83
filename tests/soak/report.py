"""What soaks have found, kept in a folder part by part, and written into docs/reliability.md."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(".soak")
PAGE = Path("docs/reliability.md")
_BEGIN = "<!-- soak: begin; written by `make soak` -->"
_END = "<!-- soak: end -->"
_SHOWN = 20


def keep(part: str, found: Mapping[str, Any]) -> None:
    """Keep what a part has found: `model`, `histories` or `churn`."""
    KEPT.mkdir(exist_ok=True)
    draft = KEPT / f"{part}.draft"
    draft.write_text(json.dumps(found, indent=2))
    draft.rename(KEPT / f"{part}.json")


def kept(part: str) -> dict[str, Any] | None:
    """What it found last; None if it never ran."""
    path = KEPT / f"{part}.json"
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def write(page: Path = PAGE) -> None:
    """Renew the section of the page."""
    before, begin, rest = page.read_text().partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        raise ValueError(f"{page} has no section between {_BEGIN} and {_END}")
    lines = "\n".join(section(kept("model"), kept("histories"), kept("churn")))
    page.write_text(f"{before}{begin}\n\n{lines}\n\n{end}{after}")


def section(
    model: Mapping[str, Any] | None,
    histories: Mapping[str, Any] | None,
    churn: Mapping[str, Any] | None,
) -> Sequence[str]:
    """The lines of the section."""
    lines = ["| what | how much | contracts broken |", "| --- | --- | --- |"]
    if model:
        lines.append(
            f"| pure model | {model['histories']} random fault histories | {_count(model)} |"
        )
    if histories:
        lines.append(
            f"| real pair | {histories['done']} random histories with {histories['lives']} pods,"
            f" {histories['faults']} faults | {_count(histories)} |"
        )
    if churn:
        lines.append(
            f"| long run | {churn['minutes']:g} minutes, {churn['created']} pods"
            f" ({churn['created'] / 60 / churn['minutes']:.1f}/s, {churn['rate']:g}/s asked for),"
            f" {len(churn['weather'])} faults, at most {churn['most_alive']} pods alive |"
            f" {_count(churn)} |"
        )
    for part, found in (("model", model), ("histories", histories), ("churn", churn)):
        if found:
            lines += ["", f"`{part}`: {found['commit']}, {found['at']}, seed {found['seed']}."]
            lines += [f"* {breach}" for breach in found["breaches"][:_SHOWN]]
    if churn:
        lines += ["", *_memory(churn)]
    return lines


def _count(found: Mapping[str, Any]) -> str:
    return str(len(found["breaches"])) if found["breaches"] else "none"


def _memory(churn: Mapping[str, Any]) -> Sequence[str]:
    if not churn["memory_mib"]:
        return ["Memory was not compared: every process was started anew in the second half."]
    rows = [
        f"| {name} | {middle:g} | {end:g} | {100 * (end / middle - 1):+.1f} % |"
        for name, (middle, end) in churn["memory_mib"].items()
    ]
    head = [
        "| service | MiB at two thirds | MiB in the end | growth |",
        "| --- | --- | --- | --- |",
    ]
    return [*head, *rows]
