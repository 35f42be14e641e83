"""The counters are the kernel's and our services' own."""

import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping

import pytest

from benchmarks import meter
from benchmarks.meter import Reading
from bridge.runtime.metrics import Metrics
from sandbox.errors import SandboxError
from tests.servers import wait_until

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"


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
    metrics.slurm_call("job.submit", 0.01, "ok")
    metrics.slurm_call("job.submit", 0.01, "rejected")
    metrics.kube_call("PATCH pods", 0.01, "ok")
    metrics.extender_call("filter", "found", 0.001)
    metrics.admission_review("patched", 0.001)
    metrics.admission_review("allowed", 0.001)

    assert {
        "extender → Slurm job.submit": 2,
        "extender → Kubernetes PATCH pods": 1,
        "kube-scheduler → filter": 1,
        "API server → review": 2,
    } == meter.calls("extender", metrics.exposition().decode())


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
    before_s = meter.cpu_s(os.getpid())
    until = time.process_time() + 0.2
    while time.process_time() < until:
        pass

    assert 0.15 < meter.cpu_s(os.getpid()) - before_s < 0.5


def test_children_count_while_they_live_and_afterwards() -> None:
    before_s = meter.cpu_s(os.getpid())
    with subprocess.Popen([sys.executable, "-c", f"{BUSY}input()"], stdin=subprocess.PIPE) as child:
        wait_until(lambda: meter.cpu_s(os.getpid()) - before_s > 0.25, 30)
        child.communicate(b"\n")

    assert meter.cpu_s(os.getpid()) - before_s > 0.25
