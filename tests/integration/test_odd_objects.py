"""One odd object costs only itself: whoever wrote it is told, everybody else is served, and no process ends.

Alice has the role `edit` in one namespace, nothing more. What she writes here the API server takes.
"""

import contextlib
from collections.abc import Iterator

import pytest

from bridge.domain import caps
from bridge.domain.lifecycle.rules import graces
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.values import faults, names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.policed import person
from tests.integration.worlds import (
    PATIENCE_S,
    Worlds,
    condition,
    is_released,
    job_manifest,
    played,
)
from tests.make import oversized
from tests.servers import wait_until

BREAK_GLASS = "slurm-bridge:break-glass"
PAIR = ("extender", "controllers")
STUBBORN = played(stop_seconds=3600)
"""A container that ignores SIGTERM."""

MANY_FIELDS = {f"{REQUEST_PREFIX}min-node{number:05}": "x" for number in range(5000)}
"""230 kB of annotations, none of them a field."""


@pytest.fixture
def alice(full_sandbox: Sandbox, worlds: Worlds) -> Iterator[Api]:
    with person(full_sandbox, worlds.namespace, "alice") as api:
        wait_until(lambda: can_list(api, worlds), PATIENCE_S, sandbox=full_sandbox)
        yield api


def can_list(api: Api, worlds: Worlds) -> bool:
    try:
        return bool(api.get(f"{worlds.path}/pods"))
    except ApiError:
        return False


def let_go(worlds: Worlds, api: Api) -> None:
    """A shorter grace ends the pod, if it is still there."""
    with contextlib.suppress(ApiError):
        api.delete(f"{worlds.path}/pods/odd", gracePeriodSeconds=0)
    worlds.await_gone("odd")


@pytest.fixture(autouse=True)
def nobody_ends(full_sandbox: Sandbox) -> Iterator[None]:
    """Neither program ends for it, nor raises over it."""
    logs = [full_sandbox.instance.log(name) for name in PAIR]
    lengths = [log.stat().st_size for log in logs]
    yield
    written = [log.read_bytes()[length:] for log, length in zip(logs, lengths, strict=True)]
    for text in written:
        assert b"process.failed" not in text
        assert b'"crashed"' not in text


@pytest.mark.attack(
    "delete a pod with a grace period of centuries",
    "clamped when read; one object affects only itself",
)
@pytest.mark.parametrize("grace_s", [10**12, 2**62, 2**63 - 1])
def test_a_delete_with_a_grace_of_centuries_stops_nobody(
    worlds: Worlds, others: Worlds, alice: Api, grace_s: int
) -> None:
    worlds.submit("odd", annotations=STUBBORN, by=alice)
    worlds.await_phase("odd", "Running")

    alice.delete(f"{worlds.path}/pods/odd", gracePeriodSeconds=grace_s)
    uid = others.submit("stranger", annotations=played(seconds=1))

    others.await_phase("stranger", "Succeeded")
    assert "COMPLETED" == others.await_accounted(uid).state
    note = worlds.await_event("odd", "OddObject")
    assert (
        f"metadata.deletionGracePeriodSeconds: expected 0 to 9223372036 seconds, found {grace_s}"
        in note
    )

    let_go(worlds, alice)


@pytest.mark.attack(
    "delete one's own pod with a grace period of years, to keep its job or its node",
    "cap `caps.grace_s`: the job is extended by no more; when it is cancelled, the grace period is shortened to Slurm's 30 s",
)
def test_a_delete_with_a_grace_of_years_keeps_neither_the_job_nor_the_node(
    worlds: Worlds, full_sandbox: Sandbox, alice: Api
) -> None:
    """The job is extended by the cap at most, and when it is cancelled, so is the rest of the grace."""
    limit = {f"{REQUEST_PREFIX}timelimit": "1"}
    uid = worlds.submit("odd", annotations={**STUBBORN, **limit}, by=alice)
    worlds.await_phase("odd", "Running")
    job = worlds.await_live(uid)

    alice.delete(f"{worlds.path}/pods/odd", gracePeriodSeconds=10**9)

    wait_until(
        lambda: worlds.time_limit(job.id).startswith("01:0"), PATIENCE_S, sandbox=full_sandbox
    )
    full_sandbox.run("scancel", str(job.id))
    worlds.await_pod(
        "odd", lambda pod: pod["metadata"]["deletionGracePeriodSeconds"] == graces.KILL_WAIT_S
    )
    assert "shortened to 30 s" in worlds.await_event("odd", "GraceShortened")

    let_go(worlds, alice)


@pytest.mark.attack(
    "give a pod too much of anything: grace period, gang, annotations, labels, affinity, host ports, tolerations, bytes",
    "[caps](caps.md), at CREATE",
)
def test_a_pod_with_too_much_of_everything_is_refused_with_all_faults(
    worlds: Worlds, alice: Api
) -> None:
    too_much = oversized.all_too_much()
    pod = {**too_much, "metadata": {**too_much["metadata"], "name": "fat"}}

    with pytest.raises(ApiError) as refused:
        alice.create(f"{worlds.path}/pods", pod)

    message = refused.value.message
    assert set(caps.TABLE) == set(oversized.caps_named(message))
    assert len(message) < faults.LONGEST_TEXT + 200


@pytest.mark.attack(
    "write a rank of 5000 digits",
    "policy `bypass`; numbers are bounded when read",
)
def test_a_rank_of_5000_digits_stops_nobody(
    worlds: Worlds, others: Worlds, full_sandbox: Sandbox
) -> None:
    """The policies let nobody write it; break-glass may, and so may whoever finds a way round them."""
    worlds.submit("odd")
    worlds.await_phase("odd", "Running")
    notes = {names.WORKLOAD_ANNOTATION: "somebody-else", names.RANK_ANNOTATION: "9" * 5000}
    with Api(full_sandbox.user_kubeconfig("mallory", "system:masters", BREAK_GLASS)) as mallory:
        mallory.patch(f"{worlds.path}/pods/odd", {"metadata": {"annotations": notes}})

    others.submit("stranger", annotations=played(seconds=1))
    others.await_phase("stranger", "Succeeded")

    path = f"metadata.annotations[{names.RANK_ANNOTATION}]"
    assert f"{path}: expected a whole number" in worlds.await_event("odd", "OddObject")
    worlds.delete("odd")
    worlds.await_gone("odd")


@pytest.mark.attack(
    "name somebody else's workload on a running pod",
    "policy `bypass`; the recorded grant is believed",
)
def test_a_pod_that_names_another_workload_keeps_its_placeholder(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    """Looked for under another name, it would be restored again and again, and keep its node from others."""
    uid = worlds.submit("odd")
    worlds.await_phase("odd", "Running")
    job = worlds.await_live(uid)
    with Api(full_sandbox.user_kubeconfig("mallory", "system:masters", BREAK_GLASS)) as mallory:
        notes = {names.WORKLOAD_ANNOTATION: "somebody-else"}
        mallory.patch(f"{worlds.path}/pods/odd", {"metadata": {"annotations": notes}})
        ends = {"metadata": {"annotations": played(seconds=0)}}
        mallory.patch(f"{worlds.path}/pods/odd", ends)
    worlds.await_pod("odd", is_released)

    assert [(job.id, "COMPLETED")] == [(each.id, each.state) for each in worlds.jobs(uid)]


@pytest.mark.attack(
    "write a group size of 5000 digits",
    "numbers are bounded when read",
)
def test_a_group_size_of_5000_digits_is_told(worlds: Worlds, alice: Api) -> None:
    alice.create(
        f"{worlds.path}/pods",
        {
            "metadata": {
                "name": "odd",
                "labels": {names.POD_GROUP_LABEL: "mine"},
                "annotations": {names.POD_GROUP_SIZE_ANNOTATION: "9" * 5000},
            },
            "spec": {"containers": [{"name": "main", "image": "example.test/image"}]},
        },
    )

    told = worlds.await_pod(
        "odd", lambda pod: names.POD_GROUP_SIZE_ANNOTATION in condition(pod).get("message", "")
    )
    message = condition(told)["message"]
    assert "expected a whole number of at most 9 digits, found 9999" in message
    assert len(message) < 500


@pytest.mark.attack(
    "put 5000 request annotations on a pod",
    "counted before they are looked at",
)
def test_a_pod_with_5000_unknown_fields_is_refused_in_few_words(worlds: Worlds, alice: Api) -> None:
    log = worlds.sandbox.instance.log("webhook")
    before = log.stat().st_size

    with pytest.raises(ApiError) as refused:
        worlds.submit("bomb", annotations=MANY_FIELDS, by=alice)

    assert "expected at most 40 fields, found more" in refused.value.message
    assert len(refused.value.message) < faults.LONGEST_TEXT
    assert log.stat().st_size - before < 20_000


@pytest.mark.attack(
    "put 5000 request annotations on a Job, which the webhook does not see",
    "counted before they are looked at, once for each version of the Job",
)
def test_a_job_with_5000_unknown_fields_is_told_and_others_are_served(
    worlds: Worlds, others: Worlds, alice: Api
) -> None:
    log = worlds.sandbox.instance.log("extender")
    before = log.stat().st_size
    job = job_manifest("bomb", annotations={}, schedulerName=names.SCHEDULER_NAME)
    job["metadata"]["annotations"] = MANY_FIELDS
    job["spec"] |= {"parallelism": 20, "completions": 20}
    alice.create(f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs", job)

    def told() -> list[str]:
        pods = alice.get(f"{worlds.path}/pods")["items"]
        found = [condition(pod) for pod in pods]
        return [each["message"] for each in found if each.get("reason") == "SubmitRefused"]

    wait_until(lambda: len(told()) == 20, PATIENCE_S, sandbox=worlds.sandbox)
    others.submit("stranger", annotations=played(seconds=1))
    others.await_phase("stranger", "Succeeded")

    assert all("expected at most 40 fields, found more" in message for message in told())
    assert all(len(message) < faults.LONGEST_TEXT for message in told())
    assert log.stat().st_size - before < 500_000
    background = {"propagationPolicy": "Background"}
    alice.delete(f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs/bomb", **background)
