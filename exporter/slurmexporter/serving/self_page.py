"""The exporter's metrics about itself, rendered for each scrape: ages must be current."""

import os
import resource
from collections.abc import Iterable, Mapping
from typing import Final

from slurmexporter.collecting.journal import Journal
from slurmexporter.collecting.latest import Latest
from slurmexporter.families.chapter import MetricBuilder
from slurmexporter.text.family import Metric, counter, gauge
from slurmexporter.text.rendering import MetricsText

_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

UP: Final = gauge(
    "slurm_up", "1 if this part of Slurm answered when it was last asked, else 0.", "source"
)
AGE: Final = gauge(
    "slurm_exporter_data_age_seconds",
    "Time since the latest reading of a source began; it grows while readings fail.",
    "source",
)
FRESH: Final = gauge(
    "slurm_exporter_data_fresh",
    "1 if the latest reading of a source is shown, 0 if there is none or it is stale.",
    "source",
)
COLLECTS: Final = counter(
    "slurm_exporter_collects_total", "Readings of a source.", "source", "outcome"
)
COLLECT_S: Final = counter(
    "slurm_exporter_collect_seconds_total", "Time spent on readings.", "source"
)
REQUESTS: Final = counter(
    "slurm_exporter_requests_total", "Requests to slurmrestd.", "operation", "outcome"
)
REQUEST_S: Final = counter(
    "slurm_exporter_request_seconds_total", "Time spent on requests.", "operation"
)
PACE: Final = gauge(
    "slurm_exporter_pace", "Factor by which intervals are stretched because slurmctld is slow."
)
DEGRADED: Final = gauge(
    "slurm_exporter_degraded", "What is left out or late, and why; always 1.", "reason"
)
ODD: Final = counter(
    "slurm_exporter_odd_objects_total",
    "Slurm objects that could not be decoded, or only in part.",
    "source",
)
SERIES: Final = gauge("slurm_exporter_series", "Series in a chapter of a page.", "names", "chapter")
DROPPED: Final = gauge(
    "slurm_exporter_series_dropped",
    "Series of a chapter left out because of --max-series.",
    "names",
    "chapter",
)
EXPIRY: Final = gauge(
    "slurm_exporter_token_expiry_timestamp_seconds", "When the Slurm token expires."
)
SCRAPES: Final = counter("slurm_exporter_scrapes_total", "Scrapes answered.")
SCRAPE_S: Final = counter("slurm_exporter_scrape_seconds_total", "Time spent on answering scrapes.")
BUILD: Final = gauge("slurm_exporter_build_info", "The exporter's version; always 1.", "version")
CPU: Final = counter("process_cpu_seconds_total", "CPU time used by the exporter.")
MEMORY: Final = gauge("process_resident_memory_bytes", "Memory used by the exporter.")
STARTED: Final = gauge(
    "process_start_time_seconds", "When the exporter started; its counters begin then."
)
FAMILIES: Final = (
    UP, AGE, FRESH, COLLECTS, COLLECT_S, REQUESTS, REQUEST_S, PACE, DEGRADED, ODD, SERIES, DROPPED,
    EXPIRY, SCRAPES, SCRAPE_S, BUILD, CPU, MEMORY, STARTED,
)  # fmt: skip


def self_metrics(
    journal: Journal,
    latest: Latest,
    *,
    sources: Iterable[str],
    sizes: Mapping[tuple[str, str], MetricsText],
    pace: float,
    version: str,
    started_s: float,
) -> Iterable[Metric]:
    """Return the exporter's metrics about itself; sizes are the rendered chapters, by name set and chapter."""
    out, ages_s = MetricBuilder(), latest.ages_s()
    out.add(UP, journal.is_slurmrestd_up, "slurmrestd")
    out.add(UP, journal.is_slurmctld_up and journal.is_slurmrestd_up, "slurmctld")
    if journal.are_databases_up is not None:
        out.add(UP, journal.are_databases_up and journal.is_slurmrestd_up, "slurmdbd")
    for source in sources:
        out.add(FRESH, latest.is_fresh(source), source)
        if source in ages_s:
            out.add(AGE, round(ages_s[source], 3), source)
    _work(out, journal)
    for (names, chapter), rendered in sizes.items():
        out.add(SERIES, rendered.series, names, chapter)
        out.add(DROPPED, rendered.dropped, names, chapter)
    if journal.token_expires_s is not None:
        out.add(EXPIRY, journal.token_expires_s)
    out.add(PACE, pace)
    out.add(SCRAPES, journal.scrapes)
    out.add(SCRAPE_S, round(journal.scrape_s, 6))
    out.add(BUILD, 1, version)
    out.add(CPU, round(_cpu_s(), 3))
    out.add(MEMORY, _memory_bytes())
    out.add(STARTED, started_s)
    return out


def _work(out: MetricBuilder, journal: Journal) -> None:
    for (source, outcome), count in journal.collects.items():
        out.add(COLLECTS, count, source, outcome)
    for source, seconds in journal.collect_s.items():
        out.add(COLLECT_S, round(seconds, 6), source)
    for (operation, outcome), count in journal.requests.items():
        out.add(REQUESTS, count, operation, outcome)
    for operation, seconds in journal.request_s.items():
        out.add(REQUEST_S, round(seconds, 6), operation)
    for source, count in journal.odd.items():
        out.add(ODD, count, source)
    for reason in sorted(journal.degraded):
        out.add(DEGRADED, 1, reason)


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _memory_bytes() -> int:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123  # for each scrape
            return int(file.read().split()[1]) * _PAGE_BYTES
    except (OSError, ValueError, IndexError):
        return 0
