"""What ended jobs under SchedMD's operator, done to ours on real kubelets: each job ends by itself (docs/operator-defects.md, D1, D3 and D5)."""

from collections.abc import Iterator
from typing import Any

import pytest

from sandbox.api import ApiError
from sandbox.image.slurm import SlurmImage
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LEAVES_S = 120.0
OBJECTS = f"/apis/slinky.slurm.net/v1beta1/namespaces/{NAMESPACE}"
NODE_SET = f"{OBJECTS}/nodesets/workers"
CONTROL_PLANE = ("controllers", "restapis", "accountings")

NO_WORKERS: dict[str, Any] = {
    "apiVersion": "slinky.slurm.net/v1beta1",
    "kind": "NodeSet",
    "metadata": {"name": "none"},
    "spec": {"replicas": 0, "controllerRef": {"name": "site"}},
}
"""It names the Controller, and nothing more."""


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images) as found:
        wait_until(lambda: found.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
        wait_until(lambda: is_known(found), STARTS_S, sandbox=found.sandbox)
        yield found


def is_known(in_pods: InPods) -> bool:
    return in_pods.condition("nodesets", "workers", "SlurmKnown")[0] == "True"


def run_on_each(in_pods: InPods, seconds: int) -> dict[str, str]:
    """Jobs that run, by worker."""
    jobs = {name: in_pods.submit(name, seconds) for name in in_pods.workers()}
    wait_until(
        lambda: {in_pods.state(job) for job in jobs.values()} == {"RUNNING"},
        STARTS_S,
        sandbox=in_pods.sandbox,
    )
    return jobs


def wants(in_pods: InPods) -> int:
    """How many workers its status says it wants; -1 while that is of an older specification."""
    found = in_pods.sandbox.admin.get(NODE_SET)
    if found["status"].get("observedGeneration") != found["metadata"]["generation"]:
        return -1
    return int(found["status"].get("desired", 0))


def test_a_scale_to_nothing_while_slurm_does_not_answer_deletes_nobody(in_pods: InPods) -> None:
    """D1."""
    sandbox = in_pods.sandbox
    jobs = run_on_each(in_pods, 45)
    with in_pods.frozen("slurmrestd"):
        wait_until(lambda: not is_known(in_pods), LEAVES_S, sandbox=sandbox)
        sandbox.admin.patch(NODE_SET, {"spec": {"replicas": 0}})
        wait_until(lambda: wants(in_pods) == 0, LEAVES_S, sandbox=sandbox)
        assert [*jobs] == in_pods.workers()
        assert {"RUNNING"} == {in_pods.state(job) for job in jobs.values()}
        sandbox.admin.patch(NODE_SET, {"spec": {"replicas": 2}})
    wait_until(lambda: is_known(in_pods), LEAVES_S, sandbox=sandbox)
    wait_until(
        lambda: {"COMPLETED"} == {in_pods.state(job) for job in jobs.values()},
        LEAVES_S,
        sandbox=sandbox,
    )
    assert [*jobs] == in_pods.workers()


def test_a_worker_whose_pod_somebody_deletes_ends_its_job_first(in_pods: InPods) -> None:
    """D3."""
    sandbox = in_pods.sandbox
    jobs = run_on_each(in_pods, 20)
    name, job = next(iter(jobs.items()))
    where = f"/api/v1/namespaces/{NAMESPACE}/pods/{name}"
    uid = sandbox.admin.get(where)["metadata"]["uid"]
    sandbox.admin.delete(where)
    wait_until(lambda: name in in_pods.drained(), LEAVES_S, sandbox=sandbox)
    assert ("RUNNING", uid) == (in_pods.state(job), sandbox.admin.get(where)["metadata"]["uid"])

    def is_another() -> bool:
        try:
            return bool(sandbox.admin.get(where)["metadata"]["uid"] != uid)
        except ApiError:
            return False

    wait_until(is_another, LEAVES_S, sandbox=sandbox)
    assert {"COMPLETED"} == {in_pods.state(each) for each in jobs.values()}
    wait_until(
        lambda: in_pods.run("sinfo", "-h", "-n", name, "-o", "%t") == "idle\n",
        LEAVES_S,
        sandbox=sandbox,
    )


def test_a_deleted_nodeset_ends_when_its_jobs_have_ended(in_pods: InPods) -> None:
    """D5. And what it needs meanwhile stays, although it is deleted at the same time. After the tests above: nothing is left."""
    sandbox = in_pods.sandbox
    wait_until(lambda: is_known(in_pods), STARTS_S, sandbox=sandbox)
    jobs = run_on_each(in_pods, 20)
    sandbox.admin.create(f"{OBJECTS}/nodesets", NO_WORKERS)
    deletion = ("--all", "--wait=false", "--namespace", NAMESPACE)
    sandbox.kubectl(
        "delete", ",".join(f"{each}.slinky.slurm.net" for each in CONTROL_PLANE), *deletion
    )
    sandbox.admin.delete(NODE_SET)
    wait_until(lambda: [*jobs] == in_pods.drained(), LEAVES_S, sandbox=sandbox)
    assert [*jobs] == in_pods.workers()

    wait_until(lambda: not in_pods.workers(), LEAVES_S, sandbox=sandbox)
    wait_until(lambda: not answers(in_pods, NODE_SET), LEAVES_S, sandbox=sandbox)
    assert {"COMPLETED"} == {in_pods.state(job) for job in jobs.values()}
    for each in CONTROL_PLANE:
        assert "being deleted; it stays" in in_pods.condition(each, "site", "Ready")[1]

    sandbox.admin.delete(f"{OBJECTS}/nodesets/none")
    wait_until(
        lambda: not any(answers(in_pods, f"{OBJECTS}/{each}/site") for each in CONTROL_PLANE),
        LEAVES_S,
        sandbox=sandbox,
    )


def answers(in_pods: InPods, where: str) -> bool:
    try:
        return bool(in_pods.sandbox.admin.get(where))
    except ApiError as error:
        if error.status != 404:
            raise
        return False
