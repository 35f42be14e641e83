"""A leader is paused for longer than its lease, another one takes over, the old one wakes up and goes on writing."""

import os
import signal
from pathlib import Path

from sandbox.client import Sandbox
from tests import faults
from tests.fault_bench import FaultBench
from tests.integration.replicas import leads, second_replica
from tests.integration.residents import Residents
from tests.integration.worlds import LIVE, Worlds, is_released, played
from tests.servers import wait_until

_TAKES_OVER_WITHIN_S = 60.0


def test_the_extenders_old_leader_submits_after_it_was_overtaken(
    worlds: Worlds,
    residents: Residents,
    bench: FaultBench,
    full_sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    proxy = bench.link("extender", "slurmrestd")
    paused: list[int] = []

    def pause() -> None:
        paused.append(pid := full_sandbox.status()["extender"].pid or 0)
        os.kill(pid, signal.SIGSTOP)

    # What it sent before it was paused arrives when the other one has taken over and submitted, too.
    proxy.inject(faults.late(25).and_then(pause), "POST", "/job/submit")
    with second_replica(full_sandbox, "extender", tmp_path) as second:
        uid = worlds.submit("once", annotations=played(seconds=1))
        wait_until(lambda: bool(paused), 30, sandbox=full_sandbox)
        try:
            wait_until(lambda: leads(second), _TAKES_OVER_WITHIN_S, sandbox=full_sandbox)
            worlds.await_live(uid, deadline_s=60)
            assert residents.are_as_they_were()
        finally:
            os.kill(paused[0], signal.SIGCONT)
        worlds.await_pod("once", is_released, 60)
        wait_until(lambda: proxy.count("LATE POST", "/job/submit"), 90, sandbox=full_sandbox)
        wait_until(lambda: not worlds.live(uid), 60, sandbox=full_sandbox)

    states = sorted(job.state for job in worlds.accounted(uid))
    # On a slow machine the late one comes first, and is adopted.
    assert states in (["CANCELLED", "COMPLETED"], ["COMPLETED"])
    assert residents.are_as_they_were()


def test_the_controllers_old_leader_writes_after_it_was_overtaken(
    worlds: Worlds,
    residents: Residents,
    bench: FaultBench,
    full_sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    """Its last write was about to cancel a placeholder; meanwhile the other one has ended it, and the pod's name is new."""
    proxy = bench.link("controllers", "slurmrestd")
    paused: list[int] = []

    def pause() -> None:
        paused.append(pid := full_sandbox.status()["controllers"].pid or 0)
        os.kill(pid, signal.SIGSTOP)

    log = full_sandbox.instance.log("controllers")
    since = log.stat().st_size
    first = worlds.submit("again")
    worlds.await_phase("again", "Running")
    proxy.inject(faults.LOST_REQUEST.and_then(pause), "DELETE", "/job/")
    with second_replica(full_sandbox, "controllers", tmp_path) as second:
        worlds.delete("again")
        wait_until(lambda: bool(paused), 30, sandbox=full_sandbox)
        try:
            wait_until(lambda: leads(second), _TAKES_OVER_WITHIN_S, sandbox=full_sandbox)
            worlds.await_gone("again", 60)
            again = worlds.submit("again")
            worlds.await_phase("again", "Running", deadline_s=60)
            job = worlds.await_live(again)
        finally:
            os.kill(paused[0], signal.SIGCONT)
        wait_until(lambda: b"lease.lost" in log.read_bytes()[since:], 60, sandbox=full_sandbox)

    assert ["CANCELLED"] == [ended.state for ended in worlds.accounted(first)]
    assert [job.id] == [live.id for live in worlds.jobs(again) if live.state in LIVE]
    assert again == worlds.await_phase("again", "Running")["metadata"]["uid"]
    assert residents.are_as_they_were()
