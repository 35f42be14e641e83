"""Attacks by a kubelet's identity, by clocks, by owners of another namespace, and by a job's owner on its time limit."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

import pytest

from sandbox import chart
from sandbox.api import Api
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.attacks import attack
from tests.integration.machines import Machine
from tests.integration.slurm_users import run_as
from tests.integration.tampering import refusal
from tests.integration.worlds import Worlds, condition, container, job_id
from tests.servers import fresh_namespace, wait_until

LIMIT = timedelta(minutes=1)
SLACK = timedelta(seconds=30)
"""For a busy machine; what the owner tries to gain is minutes."""


@contextmanager
def kubelet(sandbox: Sandbox, node: str) -> Iterator[Api]:
    """Whoever has taken over a node has this."""
    with Api(sandbox.user_kubeconfig(f"system:node:{node}", "system:nodes")) as api:
        yield api


@pytest.fixture(scope="module")
def limited(full_sandbox: Sandbox) -> Iterator[Worlds]:
    """A pod that may run for a minute, whose owner has lowered the limit that we had extended; the last test sees its end."""
    with fresh_namespace(full_sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(full_sandbox, name)
        asked = {f"{REQUEST_PREFIX}timelimit": "1"}
        uid = worlds.submit("limited", annotations=asked, terminationGracePeriodSeconds=300)

        def extended_min() -> int | None:
            found = [one.identity for one in worlds.live(uid) if one.identity]
            return found[0].extended_min if found else None

        wait_until(extended_min, 60, sandbox=full_sandbox)
        shown = extended_min() or 0
        job = worlds.await_live(uid).id
        user = full_sandbox.run("squeue", "--noheader", "-j", str(job), "-O", "UserName").strip()
        for lower in (shown - 1, shown - 2, shown - 3):
            run_as(full_sandbox, user, "scontrol", "update", f"jobid={job}", f"timelimit={lower}")
        yield worlds
        worlds.clear()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        attack(
            "a name for an address",
            "report a name as a node's InternalIP, which slurmctld would look up at every job start",
            "only IP addresses are passed on",
            {"addresses": [{"type": "InternalIP", "address": "nowhere.example"}]},
            "expected an IP address, found 'nowhere.example'",
        ),
        attack(
            "options for an address",
            "smuggle options into a node's description by its InternalIP",
            "only IP addresses are passed on",
            {"addresses": [{"type": "InternalIP", "address": "10.0.0.1 Feature=mine"}]},
            "expected an IP address",
        ),
        attack(
            "a list behind an address",
            "report an InternalIP with a zone that is a hostlist of 65 000 names, or options of slurm.conf",
            "no address with a zone is passed on: Python takes any text for one",
            {"addresses": [{"type": "InternalIP", "address": "fe80::1%n[1-65000],Feature=mine"}]},
            "expected an IP address, found 'fe80::1%n[1-65000],Feature=mine'",
        ),
        attack(
            "a billion GPUs",
            "report a billion GPUs, each of which would be named in Slurm's configuration",
            "1024 of one kind at most",
            {"allocatable": {"nvidia.com/gpu": "1000000000"}},
            "expected at most 1024 devices, found 1000000000",
        ),
    ],
)
def test_what_a_kubelet_reports_harms_nobody_else(
    limited: Worlds, machine: Machine, status: dict[str, Any], words: str
) -> None:
    with kubelet(machine.sandbox, machine.name) as api:
        body = {"status": status}
        path = f"{machine.path}/status"
        assert "" == refusal(api, "PATCH", path, body, "strategic-merge-patch+json")

    machine.label("true")

    _, message = machine.await_condition("InvalidAnnotation")
    assert words in message
    assert {} == machine.in_slurm()


@pytest.mark.attack(
    "report more CPUs or memory than any machine has, and have a job start there, so that slurmctld counts wrong or ends",
    "Slurm refuses what it cannot count, which the node says, and takes the rest; other nodes take jobs as ever",
)
@pytest.mark.parametrize(
    ("size", "reason"),
    [
        pytest.param({"cpu": "1000000000"}, "Refused", id="a billion CPUs"),
        pytest.param({"cpu": "65535"}, "InService", id="as many CPUs as 16 bits can say"),
        pytest.param({"memory": "9223372036854775807"}, "InService", id="8 EiB"),
    ],
)
def test_no_size_that_a_kubelet_reports_stops_slurm(
    worlds: Worlds, machine: Machine, size: dict[str, str], reason: str
) -> None:
    with kubelet(machine.sandbox, machine.name) as api:
        body = {"status": {"allocatable": size, "capacity": size}}
        path = f"{machine.path}/status"
        assert "" == refusal(api, "PATCH", path, body, "strategic-merge-patch+json")

    machine.label("true")

    machine.await_condition(reason)
    alone = {f"{REQUEST_PREFIX}exclusive": "true"}
    uid = worlds.submit("there", annotations=alone, nodeSelector=machine.selector)
    if reason == "InService":
        worlds.await_live(uid, lambda job: job.state == "RUNNING")
    assert "UP" in machine.sandbox.run("scontrol", "ping")
    worlds.submit("hers", nodeSelector={"kubernetes.io/hostname": "node-0"})
    worlds.await_phase("hers", "Running")
    worlds.clear()


@pytest.mark.parametrize(
    ("method", "path", "words"),
    [
        attack(
            "keys by status",
            "change a pod's job as its node's kubelet, through pods/status",
            "policy `keys`",
            "PATCH",
            "{pod}/status",
            "written by slurm-bridge",
        ),
        attack(
            "metadata",
            "change a pod's job as its node's kubelet",
            "role: kubelets write status only",
            "PATCH",
            "{pod}",
            "cannot patch resource",
        ),
        attack(
            "Slurm's token",
            "read Slurm's token as the kubelet of a node on which none of our pods runs",
            "kubelets read the Secrets of their own pods only",
            "GET",
            f"/api/v1/namespaces/{chart.NAMESPACE}/secrets/slurm-token",
            "no relationship found",
        ),
        attack(
            "our lease",
            "become our leader as a kubelet",
            "role: kubelets have leases of their own only",
            "PATCH",
            f"/apis/coordination.k8s.io/v1/namespaces/{chart.NAMESPACE}/leases/slurm-bridge-extender",
            "can only access leases in the",
        ),
    ],
)
def test_a_kubelet_changes_nothing_of_ours(
    worlds: Worlds, method: str, path: str, words: str
) -> None:
    uid = worlds.submit("hers")
    pod = worlds.await_phase("hers", "Running")
    body = {"metadata": {"labels": {names.JOB_ID_LABEL: "999999"}}}

    with kubelet(worlds.sandbox, pod["spec"]["nodeName"]) as api:
        said = refusal(
            api,
            method,
            path.replace("{pod}", f"{worlds.path}/pods/hers"),
            None if method == "GET" else body,
        )

    assert words in said
    assert job_id(pod) == worlds.await_live(uid).id


@pytest.mark.parametrize(
    "moment",
    [
        attack(
            "the year 9999",
            "report that containers end in the year 9999",
            "a kubelet's clock decides nothing",
            "9999-12-31T23:59:59Z",
        ),
        attack(
            "1970",
            "report that containers ended in 1970",
            "a kubelet's clock decides nothing",
            "1970-01-01T00:00:00Z",
        ),
    ],
)
def test_a_kubelets_clock_keeps_no_job(worlds: Worlds, moment: str) -> None:
    uid = worlds.submit("odd")
    pod = worlds.await_phase("odd", "Running")
    ended = {"exitCode": 0, "startedAt": moment, "finishedAt": moment}
    status = {
        "phase": "Succeeded",
        "containerStatuses": [
            {
                "name": "main",
                "image": "",
                "imageID": "",
                "ready": False,
                "restartCount": 0,
                "state": {"terminated": ended},
            }
        ],
    }
    with kubelet(worlds.sandbox, pod["spec"]["nodeName"]) as api:
        path = f"{worlds.path}/pods/odd/status"
        assert "" == refusal(api, "PATCH", path, {"status": status}, "strategic-merge-patch+json")

    assert "COMPLETED" == worlds.await_accounted(uid).state


@pytest.mark.attack(
    "name the owner of another namespace's pods as one's own, to join or to spoil their gang",
    "owners are found by namespace, kind, name and uid together",
)
def test_an_owner_of_another_namespace_owns_nothing_here(worlds: Worlds, others: Worlds) -> None:
    size = {names.POD_GROUP_SIZE_ANNOTATION: "2"}
    path = f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs"
    template = {"spec": {"restartPolicy": "Never", "containers": [container()]}}
    spec = {"parallelism": 2, "completions": 2, "suspend": True, "template": template}
    job = {"metadata": {"name": "ring", "annotations": size}, "spec": spec}
    uid = worlds.sandbox.admin.create(path, job)["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "uid": uid, "controller": True}
    for name, claimed in (("joins", "ring"), ("spoils", "nothing")):
        body = {
            "metadata": {"name": name, "ownerReferences": [{**owner, "name": claimed}]},
            "spec": {"containers": [container()], "restartPolicy": "Never"},
        }
        others.sandbox.admin.create(f"{others.path}/pods", body)

    worlds.sandbox.admin.patch(f"{path}/ring", {"spec": {"suspend": False}})

    ring = worlds.await_live(uid, lambda job: job.state == "RUNNING")
    assert ring.identity is not None
    listed = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
    assert {pod["metadata"]["uid"] for pod in listed} == set(ring.identity.pods)
    assert 2 == len(ring.identity.pods)


@pytest.mark.attack(
    "lower the extended time limit of one's own job, a minute at a time, so that it becomes the true one",
    "a limit between the true one and ours moves nothing",
)
def test_a_lowered_limit_gains_no_time(limited: Worlds) -> None:
    """It was lowered three times when the first test began; the pod has its minute all the same, and no more."""
    pod = limited.await_eviction("limited", deadline_s=90)

    told = condition(pod)
    assert "SlurmTimeLimit" == told["reason"]
    started, ended = (
        datetime.fromisoformat(text)
        for text in (
            pod["status"]["startTime"],
            told["lastTransitionTime"],
        )
    )
    assert ended - started < LIMIT + SLACK
