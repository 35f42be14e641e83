"""What a gang costs: one submit, a few looks, one pin for each pod."""

import re
from collections import Counter

import httpx

from sandbox.client import Sandbox
from tests.integration.counting import calls, only_bridged, undisturbed
from tests.integration.gang_pods import submit, uid_of
from tests.integration.worlds import Worlds, condition, played
from tests.servers import wait_until

SIZE = 24
PATIENT_S = 90.0


def test_a_gang_is_submitted_once_looked_at_thrice_and_pinned_pod_by_pod(worlds: Worlds) -> None:
    worlds.await_accounted(worlds.submit("before", annotations=played(seconds=1)))

    def started(attempt: int) -> tuple[Counter[str], Counter[str], int]:
        group = f"costs-{attempt}"
        worlds.clear()
        wait_until(lambda: only_bridged(worlds, 0), PATIENT_S, sandbox=worlds.sandbox)
        slurm, kube = calls(worlds.sandbox, "slurm"), calls(worlds.sandbox, "kube")
        for rank in range(SIZE):
            submit(worlds, f"{group}-{rank}", group=group, size=SIZE)
        for rank in range(SIZE):
            worlds.await_phase(f"{group}-{rank}", "Running", deadline_s=PATIENT_S)
        asked = calls(worlds.sandbox, "slurm") - slurm
        return asked, calls(worlds.sandbox, "kube") - kube, len(worlds.jobs(uid_of(worlds, group)))

    asked, told, jobs = undisturbed(worlds.sandbox, started)

    assert (1, 1) == (asked["job.submit"], jobs), (asked, told)
    assert asked["job.get"] <= 3
    assert 0 == asked["job.set_identity"]
    assert SIZE == told["PATCH pods"]
    assert told["PATCH pods/status"] <= SIZE


GANGS, MEMBERS = 10, 8
READINGS = 20
AT_A_FIXED_PACE = {
    "slurm": {"job.states", "diag", "job.get", "node.list"},
    "kube": {"GET leases", "PUT leases", "POST pods"},
}
"""What is asked whoever waits: states, and each waiting job's reason in turn; who leads, and, by a dry run, whether the webhook works.

Besides, every few minutes the API server ends a watch, and it is begun anew.
"""
WATCHES = 4
"""Of pods: either program has two, and each is begun anew once at most in so short a time."""
HELD = {"slurmjob.slinky.slurm.net/hold": "true"}
"""A reason that stays the same: others are told when they change."""


def everything(sandbox: Sandbox) -> dict[str, Counter[str]]:
    """What both programs have asked of either peer, and kube-scheduler of us."""
    asked = {
        peer: sum((calls(sandbox, peer, name) for name in ("extender", "controllers")), Counter())
        for peer in ("slurm", "kube")
    }
    url = f"{sandbox.instance.url('extender-health')}/metrics"
    text = httpx.get(url, trust_env=False).text
    found = re.findall(
        r'^slurm_bridge_extender_calls_total{verb="(\w+)",.*} (\S+)$', text, re.MULTILINE
    )
    verbs: Counter[str] = Counter()
    for verb, value in found:
        verbs[verb] += int(float(value))
    return {**asked, "kube-scheduler": verbs}


def test_gangs_that_wait_cost_nothing(worlds: Worlds) -> None:
    sandbox = worlds.sandbox
    names = [f"g{gang}-{rank}" for gang in range(GANGS) for rank in range(MEMBERS)]
    for name in names:
        submit(worlds, name, group=name.partition("-")[0], size=MEMBERS, notes=HELD)
    for name in names:
        worlds.await_pod(name, lambda pod: condition(pod).get("reason") == "JobHeldUser", PATIENT_S)
    wait_until(lambda: only_bridged(worlds, len(names)), PATIENT_S, sandbox=sandbox)
    ids = {each.id for each in worlds.queue() if each.namespace == worlds.namespace}
    assert GANGS == len(ids)
    await_readings(sandbox, 2)

    def waited(_attempt: int) -> dict[str, Counter[str]]:
        before, versions = everything(sandbox), resource_versions(worlds)
        await_readings(sandbox, READINGS)
        after = everything(sandbox)
        assert versions == resource_versions(worlds)
        return {peer: after[peer] - before[peer] for peer in after}

    more = undisturbed(sandbox, waited)

    assert set() == set(more["slurm"]) - AT_A_FIXED_PACE["slurm"]
    renewed = {each for each in more["kube"] if each.startswith("WATCH ")}
    assert all(more["kube"][each] <= WATCHES for each in renewed)
    assert set() == set(more["kube"]) - AT_A_FIXED_PACE["kube"] - renewed
    assert set() == set(more["kube-scheduler"])
    assert ids == {each.id for each in worlds.queue() if each.namespace == worlds.namespace}


def await_readings(sandbox: Sandbox, count: int) -> None:
    """Wait until the extender has listed Slurm's jobs so many times more."""
    until = calls(sandbox, "slurm")["job.states"] + count
    wait_until(
        lambda: calls(sandbox, "slurm")["job.states"] >= until, 2 * PATIENT_S, sandbox=sandbox
    )


def resource_versions(worlds: Worlds) -> dict[str, str]:
    listed = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
    return {pod["metadata"]["uid"]: pod["metadata"]["resourceVersion"] for pod in listed}
