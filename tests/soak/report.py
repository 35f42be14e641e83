"""What soaks have found, kept in a folder part by part, and written into docs/reliability.md."""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks import columns
from slurmruntime.process.clock import SystemClock
from tests.soak.hostile import page

KEPT = Path(".soak")
PAGE = Path("docs/reliability.md")
_SHOWN = 20


def part(name: str, column: str) -> str:
    """Return what a part is called where more may be switched on than the chart's defaults."""
    return name if column == columns.DEFAULTS else f"{name}-{column}"


def keep(part: str, found: Mapping[str, Any], page: Path = PAGE) -> None:
    """Keep what a part has found, and renew its section of the page."""
    KEPT.mkdir(exist_ok=True)
    draft = KEPT / f"{part}.draft"
    draft.write_text(json.dumps(found, indent=2))
    draft.rename(KEPT / f"{part}.json")
    begin, end = (
        f"<!-- soak {part}: begin; written by `{_WRITERS.get(part, 'make soak')}` -->",
        f"<!-- soak {part}: end -->",
    )
    before, has_begin, rest = page.read_text().partition(begin)
    _, has_end, after = rest.partition(end)
    if not (has_begin and has_end):
        raise ValueError(f"{page} has no section between {begin} and {end}")
    lines = "\n".join(section(part, found))
    page.write_text(f"{before}{begin}\n\n{lines}\n\n{end}{after}")


def about(seed: int) -> dict[str, object]:
    """Return what a run is known by."""
    git = shutil.which("git") or "git"
    head = (git, "rev-parse", "--short", "HEAD")
    described = subprocess.run(head, capture_output=True, text=True, check=False)
    return {"commit": described.stdout.strip(), "at": now(), "seed": seed}


def now() -> str:
    """Return the time, for people."""
    return SystemClock().now().isoformat(timespec="minutes")


def kept(part: str) -> dict[str, Any] | None:
    """What it found last; None if it never ran."""
    path = KEPT / f"{part}.json"
    found: dict[str, Any] | None = json.loads(path.read_text()) if path.exists() else None
    return found


def section(part: str, found: Mapping[str, Any]) -> Sequence[str]:
    """The lines of a part's section."""
    return [
        *_TELLS[part](found),
        "",
        f"Contracts broken: {len(found['breaches']) or 'none'}.",
        *(f"* {breach}" for breach in found["breaches"][:_SHOWN]),
        "",
        f"Commit {found['commit']}, {found['at']}, seed {found['seed']}.",
    ]


def _model(found: Mapping[str, Any]) -> Sequence[str]:
    return [f"{found['histories']} random fault histories."]


def _histories(found: Mapping[str, Any]) -> Sequence[str]:
    return [
        f"{found['done']} random histories with {found['lives']} pods, {found['faults']} faults.",
        *_odd(found.get("poison", ())),
    ]


def _churn(found: Mapping[str, Any]) -> Sequence[str]:
    minutes, per_s = found["took_s"] / 60, found["created"] / found["took_s"]
    asked = f"{found['rate']:g} a second were asked for for {found['minutes']:g}"
    return [
        f"{found['created']} pods in {minutes:.1f} minutes, {per_s:.1f} a second ({asked});",
        f"at most {found['most_alive']} alive at once.",
        "",
        "| faults | times |",
        "| --- | --- |",
        *(f"| {kind} | {times} |" for kind, times in _by_number(found["faults"])),
        "",
        "| the pod | `sacct` says of its job | pods |",
        "| --- | --- | --- |",
        *(f"| {how} | {told} | {pods} |" for how, told, pods in found["ends"]),
        "",
        "| service | MiB after the warm-up | MiB in the end | growth |",
        "| --- | --- | --- | --- |",
        *(_memory(name, found["warm"][name], found["over"].get(name)) for name in found["warm"]),
        *_odd(found.get("poison", ())),
    ]


def _slurm_jobs(found: Mapping[str, Any]) -> Sequence[str]:
    lives = sum(found["lives"].values())
    return [
        f"{found['done']} random histories with {lives} SlurmJobs and their scripts, {found['faults']} faults.",
        "",
        "| fate | SlurmJobs |",
        "| --- | --- |",
        *(
            f"| {fate.lower().replace('_', ' ')} | {times} |"
            for fate, times in _by_number(found["lives"])
        ),
    ]


def _devices(found: Mapping[str, Any]) -> Sequence[str]:
    restarts = ", ".join(f"{times} of {daemon}" for daemon, times in _by_number(found["faults"]))
    where = f"{found['nodes']} nodes with kubelet, slurmd and four devices each"
    return [
        f"{found['done']} random pods and native jobs on {where}; devices were held {found['hands']} times.",
        f"Daemons killed: {restarts or 'none'}.",
        "",
        "| what | how many |",
        "| --- | --- |",
        *(f"| {kind} | {times} |" for kind, times in _by_number(found["lives"])),
        *(f"| ended as {end} | {times} |" for end, times in _by_number(found["ends"])),
    ]


def _operator(found: Mapping[str, Any]) -> Sequence[str]:
    return [
        f"{found['done']} random histories with {found['jobs']} batch jobs; {found['excused']} of them were on a worker that was killed.",
        f"{found['unmissed']} of those were taken for running by slurmctld when the worker had been back for a minute, and then cancelled.",
        f"The end of {found['forgotten']} was forgotten by a slurmctld that was killed.",
        "",
        "| what happened | times |",
        "| --- | --- |",
        *(f"| {kind} | {times} |" for kind, times in _by_number(found["kinds"])),
    ]


def _odd(kinds: Sequence[str]) -> Sequence[str]:
    if not kinds:
        return []
    return ["", "Meanwhile there were, in both worlds:", "", *(f"* {kind}" for kind in kinds)]


def _by_number(faults: Mapping[str, int]) -> Sequence[tuple[str, int]]:
    return sorted(faults.items(), key=lambda fault: -fault[1])


def _memory(name: str, warm: Mapping[str, Any], over: Mapping[str, Any] | None) -> str:
    if over is None or warm["pid"] != over["pid"]:
        return f"| {name} | {warm['mib']:g} | | another process by then |"
    growth = over["mib"] / warm["mib"] - 1
    return f"| {name} | {warm['mib']:g} | {over['mib']:g} | {growth:+.1%} |"


_TELLS: Mapping[str, Callable[[Mapping[str, Any]], Sequence[str]]] = {
    "model": _model,
    "histories": _histories,
    "histories-fastest": _histories,
    "churn": _churn,
    "churn-fastest": _churn,
    "poison": _churn,
    "slurm-jobs": _slurm_jobs,
    "devices": _devices,
    "operator": _operator,
    "hostile": page.section,
}
_WRITERS: Mapping[str, str] = {
    "slurm-jobs": "make soak-jobs",
    "devices": "make soak-devices",
    "operator": "make soak-operator",
    "hostile": "make soak-hostile",
}
