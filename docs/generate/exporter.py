"""Write `docs/exporter-metrics.md` from slurm-exporter's tables: `python -m docs.generate.exporter > docs/exporter-metrics.md`."""

import sys
from collections.abc import Iterable

from slurmexporter.families import catalogue
from slurmexporter.serving import self_page
from slurmexporter.text.family import Family

_INTRODUCTION = """\
# Metrics of slurm-exporter

<!-- Generated: python -m docs.generate.exporter > docs/exporter-metrics.md -->

Every family that [slurm-exporter](exporter.md) serves, by name set. A family without samples is left out of a page.
Series with a label `user`, `users`, `userid` or `username` need `--user-names`; families called `…_info` are there without, with the label empty.
"""
_TITLES = {
    "own": (
        "Own names",
        "`/metrics/own`, and `/metrics` by default. Base units; counters end in `_total`.",
    ),
    "slinky": (
        "slurm-exporter's names",
        "`/metrics/slinky`: the 185 families of SchedMD's slurm-exporter. Memory is in bytes and time in seconds, as the names say; there it is MiB and microseconds.",
    ),
    "native": (
        "slurmctld's names",
        "`/metrics/native`, and by page under `/metrics/jobs`, `/metrics/nodes`, `/metrics/partitions`, `/metrics/scheduler`, `/metrics/jobs-users-accts`.",
    ),
    "vpenso": (
        "vpenso's names",
        "`/metrics/vpenso`, for dashboards 4323 and 23350. Memory is in MiB and times in microseconds, as those dashboards expect.",
    ),
}


def render() -> str:
    """Return the page."""
    parts = [_INTRODUCTION]
    for name, chapters in catalogue.NAMES.items():
        title, words = _TITLES[name]
        parts.append(f"\n## {title}\n\n{words}\n")
        for chapter in chapters:
            if name == "own":
                parts.append(f"\n### {chapter.name[0].upper()}{chapter.name[1:]}\n")
            parts.append(_table(chapter.families) if name == "own" else "")
        if name != "own":
            parts.append(_table(one for chapter in chapters for one in chapter.families))
    parts.append(
        "\n## The exporter itself\n\n`/metrics/exporter`, and at the end of its own names.\n"
    )
    parts.append(_table(self_page.FAMILIES))
    return "".join(parts)


def _table(families: Iterable[Family]) -> str:
    rows = "".join(
        f"| `{one.name}` | {one.kind} | {', '.join(f'`{label}`' for label in one.labels)} | {one.help} |\n"
        for one in families
    )
    return f"\n| family | kind | labels | meaning |\n| --- | --- | --- | --- |\n{rows}"


if __name__ == "__main__":
    sys.stdout.write(render())
