"""Jobs and nodes as Slurm lists them, and pages as Prometheus reads them."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from slurmclient.wire import reading
from slurmexporter.readings.job import Job, JobView, job_of

_LINE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"')
ALLOCATED = "cpu=4,mem=100M,node=1,billing=4,gres/gpu=2"


def job(job_id: int = 7, *states: str, **fields: Any) -> Job:
    """A job; running since 1000 on 4 CPUs, 2 GPUs and 100 MiB unless told otherwise."""
    record: dict[str, Any] = {
        "job_id": job_id,
        "job_state": states or ("RUNNING",),
        "account": "physics",
        "user_name": "alice",
        "user_id": 1001,
        "partition": "main",
        "qos": "normal",
        "submit_time": 900,
        "eligible_time": 940,
        "start_time": 1000,
        "time_limit": {"set": True, "number": 60},
        "step_id": {"sluid": f"s{job_id}"},
        "tres_alloc_str": "" if "PENDING" in states else ALLOCATED,
        "tres_req_str": ALLOCATED,
        **fields,
    }
    return job_of(reading.decode(msgspec.json.encode(record), JobView))


def samples(page: bytes | str) -> Mapping[str, Mapping[tuple[tuple[str, str], ...], float]]:
    """The values on a page by family and labels; a line that Prometheus could not read fails."""
    text = page.decode() if isinstance(page, bytes) else page
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        assert match, f"no sample: {line!r}"
        labels = tuple(sorted(_LABEL.findall(match[2] or "")))
        series = found.setdefault(match[1], {})
        assert labels not in series, f"twice: {line!r}"
        series[labels] = float(match[3])
    return found


def value(page: bytes | str, name: str, **labels: str) -> float:
    """The value of one series."""
    return samples(page)[name][tuple(sorted(labels.items()))]
