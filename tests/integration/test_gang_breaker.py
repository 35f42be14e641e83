"""A gang that runs has lost nothing, and is no reason to hold evictions back. With the breaker's default limits."""

from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names
from tests.integration.residents import readiness
from tests.integration.worlds import Manifest, Worlds, condition, job_manifest, moment
from tests.servers import wait_until

SIZE = 24
COUNTED_AFTER_S = 16.0
"""A pod without a placeholder is counted from 15 s after its start."""


def test_a_strangers_scancel_evicts_while_a_gang_of_24_runs(worlds: Worlds, others: Worlds) -> None:
    uid = others.submit("stranger")
    others.await_phase("stranger", "Running")
    gang = job_manifest("ring", annotations={names.GANG_ANNOTATION: "true"})
    gang["spec"] |= {"parallelism": SIZE, "completions": SIZE, "completionMode": "Indexed"}
    worlds.create_job(gang)
    wait_until(lambda: SIZE == len(started(worlds)), 90, sandbox=worlds.sandbox)
    wait_until(lambda: is_counted(worlds), 60, sandbox=worlds.sandbox)

    others.scancel(others.await_live(uid).id)

    evicted = others.await_eviction("stranger", deadline_s=30)
    assert "SlurmCancelled" == condition(evicted, "DisruptionTarget")["reason"]
    answer = readiness(worlds.sandbox, "controllers")
    assert answer.is_success, answer.text
    assert SIZE == len(started(worlds))


def started(worlds: Worlds) -> list[Manifest]:
    """The gang's pods that run."""
    pods = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
    return [pod for pod in pods if pod["status"]["phase"] == "Running"]


def is_counted(worlds: Worlds) -> bool:
    """Whether the breaker would count each of them if it found no placeholder."""
    now = SystemClock().now()
    ages = [(now - moment(pod["status"]["startTime"])).total_seconds() for pod in started(worlds)]
    return len(ages) == SIZE and min(ages) > COUNTED_AFTER_S
