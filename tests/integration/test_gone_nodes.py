"""Somebody deletes the record of a node that a pod might have used, but does not: nothing happens to the pod.

slurmctld checks the node lists of all jobs when it reads its configuration anew; on a sandbox of our own.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration import gang_pods
from tests.integration.machines import PATIENCE_S, Machine, a_machine
from tests.integration.worlds import Worlds, condition, is_gated
from tests.servers import fresh_namespace, running_sandbox, wait_until

_OTHERS = ("other-a", "other-b")
_HELD = {f"{names.REQUEST_PREFIX}hold": "true"}

ANEW: list[Callable[[Sandbox], object]] = [
    lambda sandbox: sandbox.restart("slurmctld"),
    lambda sandbox: sandbox.run("scontrol", "reconfigure"),
]


@pytest.fixture(scope="module")
def small_sandbox() -> Iterator[Sandbox]:
    with running_sandbox(Options(nodes=2)) as sandbox:
        yield sandbox


@pytest.fixture
def worlds(small_sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(small_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(small_sandbox, name)
        yield worlds
        worlds.clear()


@pytest.fixture
def others(small_sandbox: Sandbox) -> Iterator[list[Machine]]:
    """Two machines with a slurmd of their own, whose records are not ours."""
    sandbox = small_sandbox
    for name in _OTHERS:
        shape = ("nodeaddr=127.0.0.1", "cpus=8", "realmemory=16000", "state=CLOUD")
        sandbox.run("scontrol", "create", f"nodename={name}", *shape, "features=slurm-bridge")
    with ExitStack() as both:
        labels = {names.HYBRID_NODE_LABEL: "true", "pool": "small"}
        machines = [
            both.enter_context(a_machine(sandbox, name=name, labels=labels)) for name in _OTHERS
        ]
        for machine in machines:
            machine.await_in_slurm(lambda node: names.CLUSTER_FEATURE in node["AvailableFeatures"])
        yield machines
    for machine in machines:
        if machine.in_slurm():
            sandbox.run("scontrol", "delete", f"nodename={machine.name}")


def go(machine: Machine) -> None:
    """Scaled in."""
    machine.sandbox.run("scontrol", "delete", f"nodename={machine.name}")
    machine.remove()


def among(*kube_nodes: str) -> dict[str, object]:
    """An affinity to these nodes, by a label that is no feature."""
    either = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(kube_nodes)}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [either]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spec_of(worlds: Worlds, job_id: int) -> dict[str, str]:
    line = worlds.scontrol("--oneliner", "show", "job", str(job_id))
    return dict(field.split("=", 1) for field in line.split() if "=" in field)


@pytest.mark.parametrize("anew", ANEW, ids=["restart", "reconfigure"])
def test_pods_and_waiting_jobs_outlive_a_node_that_they_do_not_use(
    worlds: Worlds, others: list[Machine], anew: Callable[[Sandbox], object]
) -> None:
    affinity = among("node-0", *_OTHERS)
    uid = worlds.submit("healthy", affinity=affinity, nodeSelector={"kubernetes.io/os": "linux"})
    worlds.await_phase("healthy", "Running")
    waiting = worlds.submit("waiting", affinity=affinity, annotations=_HELD)
    job = worlds.await_live(waiting)
    submitted_at = spec_of(worlds, job.id)["SubmitTime"]
    for member in "ab":
        gang_pods.submit(worlds, f"gang-{member}", group="g", size=2)
    worlds.await_phase("gang-a", "Running")
    before = {
        name: worlds.await_pod(name, bool)["metadata"]["uid"] for name in ("gang-a", "gang-b")
    }
    ran = worlds.await_live(uid)

    go(others[1])
    anew(worlds.sandbox)

    wait_until(
        lambda: "RUNNING" == spec_of(worlds, ran.id)["JobState"], PATIENCE_S, sandbox=worlds.sandbox
    )
    assert "PENDING" == spec_of(worlds, job.id)["JobState"]
    assert submitted_at == spec_of(worlds, job.id)["SubmitTime"]
    worlds.scontrol("release", str(job.id))
    pod = worlds.await_phase("waiting", "Running")
    assert "node-0" == pod["spec"]["nodeName"]
    for name, known in {"healthy": uid, **before}.items():
        pod = worlds.await_phase(name, "Running")
        assert (known, False) == (
            pod["metadata"]["uid"],
            "deletionTimestamp" in pod["metadata"],
        )


def test_what_waits_forgets_a_node_that_somebody_has_deleted(
    worlds: Worlds, others: list[Machine]
) -> None:
    """Slurm takes no update of a job that names one: not even what would strike it off its lists."""
    sandbox = worlds.sandbox
    for machine in others:
        sandbox.run("scontrol", "update", f"nodename={machine.name}", "state=drain", "reason=test")
    excludes = worlds.submit("excludes", affinity=among("node-0", "node-1"), annotations=_HELD)
    requires = worlds.submit("requires", affinity=among(_OTHERS[1]))
    runs = worlds.submit("runs", affinity=among("node-0", "node-1"))
    worlds.await_phase("runs", "Running")
    jobs = {uid: worlds.await_live(uid).id for uid in (excludes, requires, runs)}
    submitted_at = spec_of(worlds, jobs[excludes])["SubmitTime"]
    assert ",".join(_OTHERS) == spec_of(worlds, jobs[excludes])["ExcNodeList"]
    assert _OTHERS[1] == spec_of(worlds, jobs[requires])["ReqNodeList"]

    go(others[1])

    wait_until(
        lambda: _OTHERS[0] == spec_of(worlds, jobs[excludes])["ExcNodeList"],
        PATIENCE_S,
        sandbox=sandbox,
    )
    assert submitted_at == spec_of(worlds, jobs[excludes])["SubmitTime"]
    worlds.scontrol("update", f"jobid={jobs[excludes]}", "comment=can be updated again")
    worlds.await_pod(
        "requires",
        lambda pod: "matches the pod's node selector" in condition(pod).get("message", ""),
    )
    assert [] == worlds.live(requires)
    assert is_gated(worlds.await_pod("requires", bool))
    assert "RUNNING" == spec_of(worlds, jobs[runs])["JobState"]
    assert _OTHERS[1] not in sandbox.run("scontrol", "--future", "--oneliner", "show", "nodes")


@pytest.mark.parametrize("is_first", [False, True], ids=["another", "the first"])
def test_a_new_node_with_a_taint_is_not_for_jobs_that_wait(
    worlds: Worlds, *, is_first: bool
) -> None:
    """What a pod does not tolerate is told by features: no list would have the new node."""
    sandbox = worlds.sandbox
    taint = {"key": "example.com/dear", "value": "yes", "effect": "NoSchedule"}
    with a_machine(sandbox) as first, a_machine(sandbox) as second:
        for machine in (first, second):
            sandbox.admin.patch(machine.path, {"spec": {"taints": [taint]}})
        if not is_first:
            first.label("true")
            first.await_in_service()
        uid = worlds.submit("plain", annotations=_HELD)
        job = worlds.await_live(uid)
        wanted = spec_of(worlds, job.id)
        assert ("(null)", "(null)") == (wanted["ReqNodeList"], wanted["ExcNodeList"])
        assert f"{names.TAINTS_FEATURE}=none" in wanted["Features"]
        for node in ("node-0", "node-1"):
            sandbox.run("scontrol", "update", f"nodename={node}", "state=drain", "reason=test")
        worlds.scontrol("release", str(job.id))

        second.label("true")
        second.await_in_service()

        wait_until(
            lambda: spec_of(worlds, job.id)["Reason"] not in ("None", "JobHeldUser"),
            PATIENCE_S,
            sandbox=sandbox,
        )
        for node in ("node-0", "node-1"):
            sandbox.run("scontrol", "update", f"nodename={node}", "state=undrain")
        pod = worlds.await_phase("plain", "Running")
        assert pod["spec"]["nodeName"] in ("node-0", "node-1")
        assert [job.id] == [each.id for each in worlds.jobs(uid)]
    for machine in (first, second):
        machine.await_not_in_slurm()
