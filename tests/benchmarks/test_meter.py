"""The counters are the kernel's and our services' own."""

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

import pytest

from benchmarks import meter
from benchmarks.meter import Reading
from sandbox.errors import SandboxError
from slurmruntime.process.metrics import Metrics
from tests.servers import wait_until

BUSY = "import time\nwhile time.process_time() < 0.4: pass\n"
PARENT = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", {BUSY + "input()"!r}], stdin=subprocess.PIPE)
input()
child.communicate(b"\\n")
print("reaped", flush=True)
input()
"""


def reading(
    pids: Mapping[str, int], cpu_s: float, calls: Mapping[str, int], *, took_s: float = 0.0
) -> Reading:
    return Reading(
        pids=pids,
        cpu_before_s=dict.fromkeys(pids, cpu_s),
        cpu_after_s=dict.fromkeys(pids, cpu_s + took_s),
        memory_mib=dict.fromkeys(pids, 100.0),
        calls=Counter(calls),
    )


def test_calls_have_readable_names_whatever_came_of_them() -> None:
    metrics = Metrics("extender")
    metrics.slurm.call("job.submit", 0.01, "ok")
    metrics.slurm.call("job.submit", 0.01, "rejected")
    metrics.kube.call("PATCH pods", 0.01, "ok")
    metrics.extender.call("filter", "found", 0.001)
    metrics.webhook.review("patched", 0.001)
    metrics.webhook.review("allowed", 0.001)

    assert {
        "extender → Slurm job.submit": 2,
        "extender → Kubernetes PATCH pods": 1,
        "kube-scheduler → filter": 1,
        "API server → review": 2,
    } == meter.calls("extender", metrics.registry.exposition().decode())


def test_what_a_stretch_used_leaves_out_the_readings_around_it() -> None:
    before = reading({"extender": 7}, 1.0, {"a": 1}, took_s=0.25)
    after = reading({"extender": 7}, 2.0, {"a": 1, "b": 2}, took_s=0.25)

    usage = meter.between(before, after)

    assert ({"extender": 0.75}, {"b": 2}) == (usage.cpu_s, usage.calls)


def test_a_part_that_was_started_anew_spoils_the_stretch() -> None:
    before = reading({"extender": 7, "webhook": 8}, 1.0, {})
    after = reading({"extender": 9, "webhook": 8}, 2.0, {})

    with pytest.raises(SandboxError, match=r"^extender went down"):
        meter.between(before, after)


def test_stretches_add_up() -> None:
    first, second, third = (reading({"extender": 7}, n, {"a": int(n)}) for n in (1.0, 2.0, 4.0))
    parts = [meter.between(first, second), meter.between(second, third)]

    assert meter.between(first, third) == meter.together(parts)


def test_cpu_time_is_what_the_process_has_used() -> None:
    with python(f"{BUSY}print(time.process_time(), flush=True)\ninput()") as (process, said):
        used_s = float(said.readline())

        assert meter.cpu_s(process.pid) == pytest.approx(used_s, abs=0.1)
        process.communicate(b"\n")


def test_children_count_while_they_live_and_afterwards() -> None:
    with python(PARENT) as (process, said):
        wait_until(lambda: meter.cpu_s(process.pid) > 0.35, 30)
        assert process.stdin is not None
        process.stdin.write(b"\n")
        process.stdin.flush()
        said.readline()

        assert meter.cpu_s(process.pid) > 0.35
        process.communicate(b"\n")


@contextmanager
def python(program: str) -> Iterator[tuple[subprocess.Popen[bytes], IO[bytes]]]:
    """A process nobody else has children in: the test run's own may be full of sandboxes."""
    command = (sys.executable, "-c", program)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield process, process.stdout
