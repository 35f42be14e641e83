"""Looks at our programs all the while: memory and processor time from the kernel, standstills from their metrics, a kubelet's probe."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from benchmarks.meter import cpu_s, peak_memory_mib
from sandbox import chart
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.process import resident_mib
from slurmruntime.process.standstill import BEAT_S
from tests.soak.hostile.figures import Reading

_STAND = "slurm_bridge_loop_longest_standstill_seconds"
_LOOKS_EVERY_S = 1.0
_ASKS_EVERY = 10
"""Looks: a kubelet's `periodSeconds` in the chart."""
_TIMEOUT_S = 5.0
"""A kubelet's `timeoutSeconds` in the chart."""
_EXPORTER_VALUES = chart.CHART.parent / "exporter" / "chart" / "values.yaml"
_UNITS_MIB = {"Mi": 1, "Gi": 1024}
_IDLE = f"""
import time
longest_s = 0.0
while True:
    due_at = time.monotonic() + {BEAT_S}
    time.sleep({BEAT_S})
    late_s = time.monotonic() - due_at
    if late_s > longest_s:
        longest_s = late_s
        print(longest_s, flush=True)
"""
"""A process that only waits: by how much it is late is the machine's share of every standstill."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One of ours."""

    name: str
    limit_mib: float
    url: str = ""
    """Of its health port; "" for one that is not asked."""
    pid: int = 0
    """0 for a part of the sandbox."""


def programs(sandbox: Sandbox, exporter: Program | None = None) -> Sequence[Program]:
    """Return those of a sandbox, and one more."""
    values = yaml.safe_load((chart.CHART / "values.yaml").read_text())
    ours = [
        Program(
            name=name,
            limit_mib=limit_mib(values[name]),
            url=sandbox.instance.url(f"{name}-health"),
        )
        for name in sandbox.instance.options.services
    ]
    scheduler = Program(name="bridge-scheduler", limit_mib=limit_mib(values["scheduler"]))
    return [*ours, scheduler, *([exporter] if exporter else [])]


def limit_mib(values: Mapping[str, Mapping[str, Mapping[str, str]]]) -> float:
    """Return the limit of memory in a chart's values of one program."""
    text = values["resources"]["limits"]["memory"]
    return float(text[:-2]) * _UNITS_MIB[text[-2:]]


def exporter_program(url: str, pid: int) -> Program:
    """Return slurm-exporter, which is no part of the sandbox."""
    limit = limit_mib(yaml.safe_load(_EXPORTER_VALUES.read_text()))
    return Program(name="slurm-exporter", limit_mib=limit, url=url, pid=pid)


class Sampler:
    """A thread for each program, so that none that hangs hides the others."""

    def __init__(self, sandbox: Sandbox, watched: Sequence[Program]) -> None:
        self.readings: dict[str, list[Reading]] = {program.name: [] for program in watched}
        self._sandbox = sandbox
        self._watched = watched
        self._pids: dict[str, int] = {}
        self._stop = threading.Event()

    @contextmanager
    def sampling(self) -> Iterator[None]:
        """Look until the end of the block."""
        threads = [threading.Thread(target=self._follow_pids, daemon=True)]
        threads += [
            threading.Thread(target=self._watch, args=(program,), daemon=True)
            for program in self._watched
        ]
        self._note_pids()
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            self._stop.set()
            for thread in threads:
                thread.join(30)

    def _follow_pids(self) -> None:
        while not self._stop.wait(_LOOKS_EVERY_S):
            self._note_pids()

    def _note_pids(self) -> None:
        with contextlib.suppress(SandboxError):
            status = self._sandbox.status()
            self._pids = {name: part.pid for name, part in status.items() if part.pid}

    def _watch(self, program: Program) -> None:
        with httpx.Client(trust_env=False, timeout=_TIMEOUT_S) as web:
            looks = 0
            while not self._stop.wait(_LOOKS_EVERY_S):
                pid = program.pid or self._pids.get(program.name, 0)
                asks = bool(program.url) and looks % _ASKS_EVERY == 0
                looks += 1
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    self.readings[program.name].append(_look(web, program, pid, asks=asks))


def _look(web: httpx.Client, program: Program, pid: int, *, asks: bool) -> Reading:
    is_alive, stand_s = None, None
    if asks:
        is_alive = _answer(web, f"{program.url}/livez") is not None
        stand_s = stand_in(_answer(web, f"{program.url}/metrics") or "")
    return Reading(
        at_s=time.monotonic(),
        pid=pid,
        memory_mib=max(resident_mib(pid), peak_memory_mib(pid)),
        cpu_s=cpu_s(pid),
        stand_s=stand_s,
        is_alive=is_alive,
    )


def _answer(web: httpx.Client, url: str) -> str | None:
    """A new connection each time, as a kubelet opens it."""
    try:
        answer = web.get(url, headers={"Connection": "close"})
    except httpx.TransportError:
        return None
    return answer.text if answer.is_success else None


def stand_in(page: str) -> float | None:
    """Return the longest standstill of all loops on a page of metrics; None if it shows none."""
    shown = [
        float(line.rpartition(" ")[2]) for line in page.splitlines() if line.startswith(_STAND)
    ]
    return max(shown, default=None)


@contextmanager
def idle_process(log: Path) -> Iterator[None]:
    """Run a process that only waits, and note its longest standstill, in seconds, in the log's last line."""
    with log.open("w") as output:
        process = subprocess.Popen((sys.executable, "-c", _IDLE), stdout=output)
        try:
            yield
        finally:
            process.terminate()
            process.wait(10)
