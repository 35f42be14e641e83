"""Gangs, priorities and limits under other settings than usual: in a sandbox of its own."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from bridge.domain.lifecycle.actions import Cause
from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration.gang_pods import GangJob, lws_member, note, submit, uid_of
from tests.integration.worlds import Worlds, condition, container, is_gated
from tests.servers import fresh_namespace, running_sandbox

KEPT_S = 15
PRIORITY_CLASSES = "/apis/scheduling.k8s.io/v1/priorityclasses"
PATIENT_S = 90.0
CLASSES = {
    "urgent": {"qos": "high"},
    "someday": {"nice": "700"},
    "exactly": {"priority": "4242"},
}
RULE = {
    "name": "everybody",
    "user": "kubernetes",
    "group": "kubernetes",
    "account": {"default": "kubernetes"},
    "qos": {"allowed": ["*"]},
    "nice": {"max": 10_000},
    "priority": {"min": 1, "max": 10_000},
}

_OPTIONS = Options(
    accounting=True,
    nodes=2,
    plain_nodes=0,
    settings=(
        f"controllers.kept_slots_deadline_s={KEPT_S}",
        'placement.required_limits=["memory"]',
        f"policy.rules={json.dumps([RULE])}",
        f"placement.priority_classes={json.dumps(CLASSES)}",
    ),
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Slurm knows a second QOS, and Kubernetes three priority classes."""
    with running_sandbox(_OPTIONS) as sandbox:
        sandbox.run("sacctmgr", "-i", "add", "qos", "high")
        sandbox.run("sacctmgr", "-i", "modify", "user", "kubernetes", "set", "qos+=high")
        for name in CLASSES:
            body = {"metadata": {"name": name}, "value": 1000}
            sandbox.admin.create(PRIORITY_CLASSES, body)
        yield sandbox


@pytest.fixture
def here(sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        yield worlds
        worlds.clear()


def shown(worlds: Worlds, uid: str) -> dict[str, str]:
    """What scontrol shows of the workload's job."""
    job = worlds.await_live(uid)
    words = worlds.scontrol("show", "job", str(job.id)).split()
    return dict(word.split("=", 1) for word in words if "=" in word)


def group_of(worlds: Worlds, number: int) -> str:
    return f"LeaderWorkerSet/{worlds.namespace}/serve/{number}"


# --- slots kept ------------------------------------------------------------------------------------------------------


def test_a_leader_whose_workers_never_come_gives_the_nodes_back(here: Worlds) -> None:
    """And only that one: another's worker came late, but before its time was over."""
    leader = lws_member(here, 0, 0, 2)
    here.await_phase("serve-0", "Running")
    worker = lws_member(here, 0, 1, 2)
    here.await_phase("serve-0-1", "Running")
    (whole,) = here.live(group_of(here, 0))

    lws_member(here, 1, 0, 3)
    here.await_phase("serve-1", "Running")
    said = here.await_event("serve-1", Cause.INCOMPLETE.value, PATIENT_S)
    assert f"2 of the 3 slots of Slurm job {whole.id + 1} were kept for {KEPT_S} s" in said
    here.await_gone("serve-1", PATIENT_S)
    ended = here.await_accounted(group_of(here, 1))
    assert ("FAILED", "255:0") == (ended.state, ended.exit_code)

    # The first began before, so its time is over as well.
    for name, uid in (("serve-0", leader), ("serve-0-1", worker)):
        assert uid == here.await_phase(name, "Running")["metadata"]["uid"]
    assert [(whole.id, "RUNNING")] == [(job.id, job.state) for job in here.live(group_of(here, 0))]


# --- no slot is free -------------------------------------------------------------------------------------------------


def test_surplus_members_that_say_so_wait(here: Worlds) -> None:
    gang = GangJob(here, "steady", 2, notes={names.WHEN_FULL_ANNOTATION: "wait"})
    before = gang.await_running(2)
    gang.scale(3)

    (late,) = {pod["metadata"]["name"] for pod in _gated(here, gang)}
    told = condition(here.await_pod(late, lambda pod: condition(pod).get("reason") == "GangFull"))
    assert "it waits until one becomes free" in told["message"]

    gone, *_ = before
    here.delete(gone["metadata"]["name"])
    replaced = here.await_phase(late, "Running")
    assert note(gone, names.RANK_ANNOTATION) == note(replaced, names.RANK_ANNOTATION)


def test_other_surplus_members_get_jobs_of_their_own(here: Worlds) -> None:
    for name in ("a", "b"):
        submit(here, name, group="full", size=2)
    for name in ("a", "b"):
        here.await_phase(name, "Running")
    uid = _submit_saying(here, "own-job")
    here.await_phase("c", "Running")
    assert 1 == len(here.live(uid))
    assert 1 == len(here.live(uid_of(here, "full")))


def _submit_saying(worlds: Worlds, word: str) -> str:
    labels = {names.POD_GROUP_LABEL: "full"}
    notes = {names.POD_GROUP_SIZE_ANNOTATION: "2", names.WHEN_FULL_ANNOTATION: word}
    metadata = {"name": "c", "labels": labels, "annotations": notes}
    spec = {
        "containers": [container()],
        "restartPolicy": "Never",
    }
    body = {"metadata": metadata, "spec": spec}
    return str(worlds.sandbox.admin.create(f"{worlds.path}/pods", body)["metadata"]["uid"])


def _gated(worlds: Worlds, gang: GangJob) -> list[dict[str, Any]]:
    worlds.await_one_pod(f"batch.kubernetes.io/job-name={gang.name}", is_gated)
    return [pod for pod in gang.pods() if is_gated(pod)]


# --- priorities and time ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [("urgent", "QOS", "high"), ("someday", "Nice", "700"), ("exactly", "Priority", "4242")],
)
def test_a_priority_class_asks_slurm_for_what_it_stands_for(
    here: Worlds, name: str, field: str, value: str
) -> None:
    uid = here.submit("classy", priorityClassName=name)
    assert value == shown(here, uid)[field]
    here.await_phase("classy", "Running")


def test_an_annotation_wins_over_the_priority_class(here: Worlds) -> None:
    notes = {f"{names.REQUEST_PREFIX}nice": "3"}
    uid = here.submit("humble", annotations=notes, priorityClassName="someday")
    assert "3" == shown(here, uid)["Nice"]


def test_an_active_deadline_is_the_time_limit(here: Worlds) -> None:
    """Of the pod, in whole minutes; or of its Job, for all of a gang."""
    uid = here.submit("brief", activeDeadlineSeconds=90)
    assert "00:02:00" == shown(here, uid)["TimeLimit"]

    gang = GangJob(here, "bounded", 2, activeDeadlineSeconds=5400)
    assert "01:30:00" == shown(here, gang.uid)["TimeLimit"]

    single = GangJob(here, "parts", 1, gang="false", activeDeadlineSeconds=600)
    (pod,) = single.await_running(1)
    assert "00:10:00" == shown(here, pod["metadata"]["uid"])["TimeLimit"]


@pytest.mark.attack(
    "use more of a node than Slurm gave",
    "limits that equal the requests, if the administrator requires them (`placement.required_limits`)",
)
def test_a_pod_that_may_use_more_than_slurm_gives_it_is_refused(here: Worlds) -> None:
    """Here the administrator requires limits on memory."""
    requests = {"cpu": "1", "memory": "64Mi"}

    def submit_with(limits: dict[str, str]) -> str:
        resources = {"requests": requests, "limits": limits}
        return here.submit("limited", containers=[{**container(), "resources": resources}])

    for limits in ({}, {"memory": "30Gi"}):
        with pytest.raises(ApiError) as refused:
            submit_with(limits)
        assert "spec.containers[*].resources.limits[memory]: expected a" in refused.value.message
    submit_with({"memory": "64Mi"})

    here.await_phase("limited", "Running")
