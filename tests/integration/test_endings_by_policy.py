"""Endings that the administrator's settings decide: with small numbers, in a sandbox of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from bridge.domain.lifecycle.actions import Cause
from bridge.domain.nodes import fillers
from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration import gang_pods
from tests.integration.breaker import await_read, await_readiness, evictions_allowed
from tests.integration.machines import repaired
from tests.integration.policed import policed
from tests.integration.slurm_users import run_as
from tests.integration.volumes import a_volume, mounted, only_on, volume_of
from tests.integration.worlds import (
    HOST_PORT,
    Manifest,
    Worlds,
    condition,
    container,
    is_released,
    job_id,
    played,
)
from tests.servers import fresh_namespace, running_sandbox, wait_until

_OPTIONS = Options(
    accounting=True,
    nodes=2,
    plain_nodes=0,
    settings=(
        "controllers.start_deadline_s=5",
        "placement.bind_deadline_s=5",
        "controllers.suspended=keep",
        "controllers.eviction_always=2",
    ),
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox(_OPTIONS) as sandbox:
        yield sandbox


@pytest.fixture
def here(sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        yield worlds
        worlds.clear()


@pytest.mark.ending("never-started")
def test_a_pod_that_never_starts_gives_its_allocation_back(here: Worlds) -> None:
    stuck = {"sandbox.slurm-bridge.dev/waiting-reason": "ImagePullBackOff"}
    uid = here.submit("stuck", annotations=stuck)

    note = here.await_event("stuck", Cause.NOT_STARTED.value)

    here.await_gone("stuck")
    ended = here.await_accounted(uid)
    assert ("FAILED", "255:0") == (ended.state, ended.exit_code)
    assert "not started on node-" in note
    assert "ImagePullBackOff" in note


@pytest.mark.ending("never-bound")
def test_a_pod_that_cannot_be_bound_gives_its_allocation_back(
    here: Worlds, sandbox: Sandbox
) -> None:
    """Its volume turns out to be elsewhere after its job was submitted."""
    with a_volume(here, "far"):
        held = {f"{names.REQUEST_PREFIX}hold": "true"}
        uid = here.submit("unbound", volumes=[mounted("far")], annotations=held)
        job = here.await_live(uid)
        sandbox.admin.patch(volume_of(here, "far"), {"spec": only_on("nowhere")})
        here.scontrol("release", str(job.id))
        evicted = here.await_eviction("unbound")
        here.await_gone("unbound")

    assert "nodeName" not in evicted["spec"]
    assert "PersistentVolume" in condition(evicted, "DisruptionTarget")["message"]
    assert "SlurmBindDeadline" == condition(evicted, "DisruptionTarget")["reason"]
    assert "CANCELLED" == here.await_accounted(uid).state


@pytest.mark.attack(
    "mount a volume that only kube-scheduler knows to be in use, so that jobs start and are cancelled without end",
    "after three evictions the controller's next pod is held for an hour",
)
def test_pods_that_cannot_be_bound_teach_their_successors(here: Worlds) -> None:
    """Somebody else uses their volume, which may be used by one pod only: kube-scheduler alone knows."""
    with a_volume(here, "one", mode="ReadWriteOncePod"):
        here.submit("first", volumes=[mounted("one")])
        here.await_phase("first", "Running")
        labels = {"app": "second"}
        template = {"containers": [container()], "volumes": [mounted("one")]}
        here.sandbox.admin.create(
            f"/apis/apps/v1/namespaces/{here.namespace}/replicasets",
            {
                "metadata": {"name": "second"},
                "spec": {
                    "replicas": 1,
                    "selector": {"matchLabels": labels},
                    "template": {"metadata": {"labels": labels}, "spec": template},
                },
            },
        )

        held = here.await_one_pod(
            "app=second", lambda pod: condition(pod).get("reason") == "BindHeld"
        )
        here.sandbox.kubectl("-n", here.namespace, "delete", "replicaset", "second")

    assert "(on node-" in condition(held)["message"]
    assert [] == here.jobs(held["metadata"]["uid"])
    seconds = [job for job in here.queue() if job.identity and "second-" in job.identity.name]
    tried = sorted(seconds, key=lambda job: job.id)
    assert ["CANCELLED"] * 3 == [job.state for job in tried]
    assert {"node-0", "node-1"} == {job.nodes for job in tried[:2]}


@pytest.mark.attack(
    "ask for a host port that is taken on every node, so that jobs start and are cancelled without end",
    "after six jobs none is submitted for an hour",
)
def test_a_pod_that_fits_nowhere_is_held_after_six_jobs(here: Worlds) -> None:
    squatters = [f"squatter-{number}" for number in range(2)]
    with fresh_namespace(here.sandbox, labels={}) as name:
        elsewhere = Worlds(here.sandbox, name)
        for number, squatter in enumerate(squatters):
            elsewhere.submit(
                squatter,
                containers=[{**container("100m"), **HOST_PORT}],
                tolerations=[{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}],
                nodeSelector={"kubernetes.io/hostname": f"node-{number}"},
            )
            elsewhere.await_phase(squatter, "Running")
        uid = here.submit("hopeless", containers=[{**container(), **HOST_PORT}])

        held = here.await_pod(
            "hopeless", lambda pod: condition(pod).get("reason") == "NodeMisfitHeld", 120
        )
        elsewhere.clear()

    assert "none is submitted for an hour" in condition(held)["message"]
    assert 6 == len(here.jobs(uid))
    assert [] == here.live(uid)


@pytest.mark.ending("never-looked-at")
def test_pods_and_jobs_outlive_a_kube_scheduler_that_is_away(
    here: Worlds, sandbox: Sandbox
) -> None:
    """For longer than the bind deadline."""
    pods = [f"pod-{number}" for number in range(3)]
    sandbox.stop("bridge-scheduler")
    try:
        uids = {name: here.submit(name) for name in pods}
        for name in pods:
            told = here.await_pod(
                name, lambda pod: condition(pod).get("reason") == "BindingStalled"
            )
            assert "kube-scheduler has not bound the pod" in condition(told)["message"]
        jobs = {name: here.live(uid)[0].id for name, uid in uids.items()}
    finally:
        sandbox.start("bridge-scheduler")

    for name in pods:
        running = here.await_phase(name, "Running")
        assert (uids[name], jobs[name]) == (running["metadata"]["uid"], job_id(running))


@contextmanager
def refusing_pins(here: Worlds, *, spared: str = "") -> Iterator[None]:
    """Somebody's admission policy refuses our pin of all but one pod in this namespace, and annotation `probe`."""
    meta = {"name": f"nobody-pins-{here.namespace}"}
    only_here = {"matchLabels": {"kubernetes.io/metadata.name": here.namespace}}
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE", "UPDATE"],
        "resources": ["pods"],
    }
    keys = f"['probe', '{names.NODE_ANNOTATION}']"
    pinned = f"object.metadata.?annotations.orValue({{}}).exists(k, k in {keys})"
    expression = f"object.metadata.name == '{spared}' || !{pinned}"
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": expression, "message": "nobody pins here"}],
    }
    binding = {
        "policyName": meta["name"],
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": only_here},
    }
    there = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
    admin = here.sandbox.admin
    admin.create(f"{there}ies", {"metadata": meta, "spec": spec})
    admin.create(f"{there}ybindings", {"metadata": meta, "spec": binding})

    def is_refused() -> bool:
        probe: Manifest = {
            "metadata": {"name": "probe", "annotations": {"probe": ""}},
            "spec": {"containers": [container()]},
        }
        try:
            admin.request("POST", f"{here.path}/pods", probe, params={"dryRun": "All"})
        except ApiError as error:
            return "nobody pins here" in error.message
        return False

    try:
        wait_until(is_refused, 60, sandbox=here.sandbox)
        yield
    finally:
        admin.delete(f"{there}ybindings/{meta['name']}")
        admin.delete(f"{there}ies/{meta['name']}")


def test_a_gang_waits_for_the_one_that_cannot_be_pinned_and_says_so(here: Worlds) -> None:
    with refusing_pins(here, spared="a"):
        for name in ("a", "b"):
            gang_pods.submit(here, name, group="ring", size=2)
        here.await_phase("a", "Running")
        told = here.await_pod("b", lambda pod: condition(pod).get("reason") == "GangMemberUnplaced")
        assert "nobody pins here" in condition(told)["message"]
        assert 1 == len(here.live(gang_pods.uid_of(here, "ring")))


def test_a_pod_that_cannot_be_pinned_gives_its_allocation_back_and_is_told(here: Worlds) -> None:
    with refusing_pins(here):
        uid = here.submit("refused")

        note = here.await_event("refused", "NodeMisfit")

        assert "the API server refuses to give it to the pod" in note
        assert "nobody pins here" in note
        assert "CANCELLED" == here.await_accounted(uid).state

    here.await_phase("refused", "Running")


@pytest.mark.ending("suspended")
def test_a_suspended_pod_runs_on_and_is_told_so_until_it_is_resumed(here: Worlds) -> None:
    uid = here.submit("suspended")
    node = here.await_phase("suspended", "Running")["spec"]["nodeName"]
    job = here.live(uid)[0]
    with repaired(here, node):
        here.scontrol("suspend", str(job.id))
        told = here.await_pod("suspended", lambda pod: condition(pod).get("reason") == "Suspended")
        assert ("False", "Running") == (condition(told)["status"], told["status"]["phase"])
        assert "deletionTimestamp" not in told["metadata"]

        here.scontrol("resume", str(job.id))
        here.await_pod("suspended", lambda pod: condition(pod).get("status") == "True")
        assert [(job.id, "RUNNING")] == [(one.id, one.state) for one in here.jobs(uid)]

        here.delete("suspended")
        assert "CANCELLED" == here.await_accounted(uid).state


def test_a_pod_that_ends_while_it_is_suspended_ends_as_it_did(here: Worlds) -> None:
    uid = here.submit("ends", annotations=played(seconds=4, exit_code=3))
    node = here.await_phase("ends", "Running")["spec"]["nodeName"]
    with repaired(here, node):
        here.scontrol("suspend", str(here.live(uid)[0].id))

        here.await_pod("ends", is_released)

        ended = here.await_accounted(uid)
        assert ("FAILED", "3:0") == (ended.state, ended.exit_code)


@pytest.mark.ending("too-many")
def test_many_are_not_evicted_at_once_before_an_operator_says_so(
    here: Worlds, sandbox: Sandbox
) -> None:
    """Their node failed in Slurm. As long as they run there, Slurm gives what they take to nobody."""
    doomed, survivor = [f"pod-{number}" for number in range(3)], "survivor"
    there, elsewhere = on("node-0"), on("node-1")
    uids = {
        name: here.submit(name, annotations=played(stop_seconds=1), nodeSelector=there)
        for name in doomed
    }
    here.submit(survivor, nodeSelector=elsewhere)
    await_read(here, *doomed, survivor)
    jobs = {name: here.live(uid)[0].id for name, uid in uids.items()}

    down(here, "node-0")

    for name in doomed:
        told = here.await_pod(name, lambda pod: condition(pod).get("reason") == "EvictionHeldBack")
        assert f"Slurm job {jobs[name]} " in condition(told)["message"]
    await_readiness(sandbox, 503, "3 of 4 running pods have lost their placeholder")
    sandbox.restart("controllers", signal="KILL", wait=False)
    await_readiness(sandbox, 503, f"{names.EVICT_UNTIL_ANNOTATION}=")
    for name in doomed:
        assert "deletionTimestamp" not in here.await_pod(name, bool)["metadata"]
    assert {"evictions_held_back": 3.0, "pods_without_job": 3.0} == told_in_metrics(sandbox)
    up(here, "node-0")
    wait_until(lambda: [3] == filled(sandbox, "node-0"), 60, sandbox=sandbox)
    late = here.submit("late", cpus="6", nodeSelector=there)
    here.await_pod("late", lambda pod: condition(pod).get("reason") == "Resources")
    assert ["PENDING"] == [job.state for job in here.live(late)]

    with evictions_allowed(sandbox):
        for name in doomed:
            here.await_gone(name)
            assert "NODE_FAIL" == here.await_accounted(uids[name]).state
        assert "Running" == here.await_pod(survivor, bool)["status"]["phase"]
        await_readiness(sandbox, 200, "[+] evictions: ok")
        here.await_phase("late", "Running")
    assert {"evictions_held_back": 0.0, "pods_without_job": 0.0} == told_in_metrics(sandbox)
    assert [] == filled(sandbox, "node-0")


@pytest.mark.attack(
    "cancel the jobs of more own pods than may be evicted at once, to compute on without job, charge or limit",
    "the circuit breaker is for losses; a cancel is evidence, and its pods go however many they are",
)
def test_who_cancels_many_own_jobs_keeps_no_pod_and_holds_back_nobodys(
    here: Worlds, sandbox: Sandbox
) -> None:
    sandbox.run("sacctmgr", "-i", "add", "account", "physics")
    sandbox.run("sacctmgr", "-i", "add", "user", "alice", "account=physics")
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        rules = [
            {
                "name": "hers",
                "match": {"namespaces": [name]},
                "user": "alice",
                "account": {"default": "physics"},
            },
            {"name": "others", "match": {"namespaces": ["test-*"]}, "user": "kubernetes"},
        ]
        hers = Worlds(sandbox, name)
        with policed(sandbox, {"rules": rules}):
            pods = [f"hers-{number}" for number in range(4)]
            for pod in pods:
                hers.submit(pod, annotations=played(stop_seconds=1))
            uids = {pod: here.submit(pod) for pod in ("stays", "goes")}
            await_read(hers, *pods)
            await_read(here, *uids)
        jobs = [str(job.id) for job in hers.queue() if job.namespace == name and job.is_live]

        # In one request: the controllers must not read Slurm between two of them.
        run_as(sandbox, "alice", "scancel", "--ctld", *jobs)
        here.scancel(here.live(uids["goes"])[0].id)

        for pod in pods:
            evicted = hers.await_eviction(pod)
            assert "SlurmCancelled" == condition(evicted, "DisruptionTarget")["reason"]
            hers.await_gone(pod)
        evicted = here.await_eviction("goes")
        assert "SlurmCancelled" == condition(evicted, "DisruptionTarget")["reason"]
        await_readiness(sandbox, 200, "[+] evictions: ok")
        assert "Running" == here.await_pod("stays", bool)["status"]["phase"]
        assert {"evictions_held_back": 0.0, "pods_without_job": 0.0} == told_in_metrics(sandbox)


def on(node: str) -> dict[str, str]:
    """A pod's node selector."""
    return {"kubernetes.io/hostname": node}


def down(worlds: Worlds, node: str) -> None:
    """Slurm ends all jobs there."""
    worlds.scontrol("update", f"nodename={node}", "state=DOWN", "reason=lost")


def up(worlds: Worlds, node: str) -> None:
    worlds.scontrol("update", f"nodename={node}", "state=RESUME")


def filled(sandbox: Sandbox, node: str) -> list[int]:
    """CPUs of the fillers that run on a node."""
    asked = ("--name", fillers.NAME, "--states=RUNNING", "-w", node, "-o", "%C")
    return [int(line) for line in sandbox.run("squeue", "--noheader", *asked).splitlines()]


def told_in_metrics(sandbox: Sandbox) -> dict[str, float]:
    """Pods that are held back, and pods without a job."""
    url = f"{sandbox.instance.url('controllers-health')}/metrics"
    lines = httpx.get(url, trust_env=False).text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    return {
        name: float(values[f"slurm_bridge_{name}"])
        for name in ("evictions_held_back", "pods_without_job")
    }
