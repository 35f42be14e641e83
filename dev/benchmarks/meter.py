"""What the parts of a sandbox use.

CPU time and memory from the kernel, calls from our services' metrics.

It loads what it measures only with three scrapes per reading. A service gives the same text for a second,
so readings are at least that far apart.
"""

import os
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.results import Usage
from sandbox.client import Sandbox
from sandbox.control import PartStatus
from sandbox.errors import SandboxError
from slurmruntime.process.health import EXPOSITION_S

SERVICES = ("webhook", "extender", "controllers")
"""Our services, in Python."""
LOAD = "the load itself"

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_COUNTED = {
    "slurm_bridge_slurm_requests_total": ("{service} → Slurm {operation}"),
    "slurm_bridge_kube_requests_total": ("{service} → Kubernetes {operation}"),
    "slurm_bridge_extender_calls_total": ("kube-scheduler → {verb}"),
    "slurm_bridge_admission_reviews_total": ("API server → review"),
    "slurm_bridge_reconciles_total": ("{service}: looks at {queue}"),
}
_SCRAPE_TIMEOUT_S = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All counters at one moment."""

    pids: Mapping[str, int | None]
    cpu_before_s: Mapping[str, float]
    cpu_after_s: Mapping[str, float]
    """The reading itself costs our services a few milliseconds: stretches end before one, and begin
    after one.
    """
    memory_mib: Mapping[str, float]
    calls: Counter[str]


class Meter:
    """Reads the counters of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._stale_at = 0.0
        """From when on the services write their metrics anew."""

    def read(self) -> Reading:
        """Read every counter."""
        time.sleep(max(0.0, self._stale_at - time.monotonic()))
        parts = self._sandbox.status()
        pids = {name: part.pid for name, part in parts.items()}
        cpu_before_s = _cpu_s(pids)
        calls = sum((self._calls(name) for name in SERVICES if name in parts), Counter())
        self._stale_at = time.monotonic() + EXPOSITION_S
        return Reading(
            pids=pids,
            cpu_before_s=cpu_before_s,
            cpu_after_s=_cpu_s(pids),
            memory_mib={name: part.memory_mib for name, part in parts.items()},
            calls=calls,
        )

    @staticmethod
    def cpu_s(parts: Mapping[str, PartStatus]) -> Mapping[str, float]:
        """Return the CPU time of these parts; asks no service, so that they may be stopped."""
        return _cpu_s({name: part.pid for name, part in parts.items()})

    def _calls(self, service: str) -> Counter[str]:
        url = self._sandbox.env[f"SLURM_BRIDGE_METRICS_{service.upper()}"]
        with urllib.request.urlopen(url, timeout=_SCRAPE_TIMEOUT_S) as answer:  # noqa: S310  # our own http address
            return calls(service, answer.read().decode())


def between(before: Reading, after: Reading) -> Usage:
    """Return what was used between two readings.

    Raises:
        SandboxError: a part was restarted in between, so its counters were reset.
    """
    anew = [name for name, pid in after.pids.items() if pid != before.pids.get(name)]
    if anew:
        raise SandboxError(f"{', '.join(anew)} went down while being measured: see the logs")
    return Usage(
        cpu_s={
            name: round(now - before.cpu_after_s[name], 2)
            for name, now in after.cpu_before_s.items()
        },
        memory_mib={name: round(mib, 1) for name, mib in after.memory_mib.items()},
        calls=dict(after.calls - before.calls),
    )


def together(usages: Sequence[Usage]) -> Usage:
    """Add up the usage of consecutive stretches."""
    cpu_s: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for usage in usages:
        cpu_s.update(usage.cpu_s)
        calls.update(usage.calls)
    return Usage(cpu_s=cpu_s, memory_mib=usages[-1].memory_mib, calls=calls)


def calls(service: str, exposition: str) -> Counter[str]:
    """Return what a service has counted, under readable names; outcomes are added up."""
    counted: Counter[str] = Counter()
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            if sample.name in _COUNTED:
                name = _COUNTED[sample.name].format(service=service, **sample.labels)
                counted[name] += int(sample.value)
    return counted


def _cpu_s(pids: Mapping[str, int | None]) -> dict[str, float]:
    found = {name: cpu_s(pid) for name, pid in pids.items() if pid}
    return {**found, LOAD: time.process_time()}


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its children, living or dead: proc_pid_stat(5)."""
    process = Path(f"/proc/{pid}")
    # The program's name may contain anything, even a bracket: the fields come after the last one.
    fields = (process / "stat").read_text().rpartition(")")[2].split()
    own = sum(int(ticks) for ticks in fields[11:15]) / _TICKS_PER_S
    children = (process / "task" / str(pid) / "children").read_text().split()
    return own + sum(cpu_s(int(child)) for child in children)


def peak_memory_mib(pid: int) -> float:
    """Return the most memory that a process ever had, in MiB: proc_pid_status(5), VmHWM."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return 0.0
