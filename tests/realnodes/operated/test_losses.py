"""Something is lost under a SlurmCluster's jobs: it comes back by itself, and what is lost is told.

The tests share one cluster of a few lines, and the last one deletes it.
"""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
import yaml

from sandbox.api import ApiError
from sandbox.image.slurm import SlurmImage
from sandbox.operator import demo
from sandbox.operator.serving import cluster_file
from slurmruntime.process.clock import SystemClock
from tests.realnodes.containers import running
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.real_all

REGISTERS_S = 30.0
MISSES_S = 120.0
"""Until Slurm knows that a job has ended with its worker: the pause of its successor, and what a machine takes that does more."""
GOES_S = 480.0
"""Kubernetes looks at a namespace whose pods may take a day to end every five minutes only."""
JOB_S = 20
TOLERATES = [{"key": "only", "operator": "Exists"}]
"""A taint keeps real-1 free of anything but the worker `cpu`: whatever is evicted there, slurmctld has its state."""
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLUSTER_PATH = f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{NAMESPACE}/slurmclusters/site"
CLUSTER: dict[str, Any] = {
    "apiVersion": "slurm-bridge.dev/v1alpha1",
    "kind": "SlurmCluster",
    "metadata": {"name": "site", "namespace": NAMESPACE},
    "spec": {
        "nodes": [
            {
                "name": name,
                "replicas": replicas,
                "template": {
                    "spec": {
                        "nodeSelector": {"kubernetes.io/hostname": machine},
                        "tolerations": TOLERATES,
                    }
                },
                **more,
            }
            for name, replicas, machine, more in (
                ("cpu", 1, "real-1", {}),
                ("gpu", 0, "real-0", {"gres": "gpu:1"}),
            )
        ],
        "login": {},
    },
}
POD, NODE, NODE_SET = "site-worker-cpu-0", "cpu-0", "site-worker-cpu"
LOST_JOBS = "slurm-bridge.dev/may-have-lost-jobs"


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    """All but one worker is on real-0."""
    with running_sandbox(replace(demo.SHAPE, real_nodes=2)) as sandbox:
        own = yaml.safe_load(cluster_file(sandbox.instance).read_text())["spec"]
        own["configFiles"]["gres.conf"] = (
            "NodeName=gpu-0 Name=gpu\n"  # slurmd takes no GPU without a file
        )
        body = json.dumps({**CLUSTER, "spec": {**CLUSTER["spec"], **own}})
        sandbox.kubectl("create", "namespace", NAMESPACE)
        sandbox.kubectl("taint", "node", "real-1", "only=worker:NoSchedule")
        sandbox.kubectl("apply", "-f", "-", stdin=body)
        found = InPods(sandbox, login_image="")
        wait_until(lambda: stands(found)[0] == "True", 2 * STARTS_S, sandbox=sandbox)
        yield found


def stands(in_pods: InPods) -> tuple[str, str]:
    """Whether the whole cluster is ready, and what it says."""
    told = in_pods.sandbox.admin.get(CLUSTER_PATH).get("status", {}).get("conditions", ())
    return next(
        ((c["status"], c.get("message", "")) for c in told if c["type"] == "Ready"), ("", "")
    )


def pod(in_pods: InPods, name: str = POD) -> dict[str, Any]:
    """A pod; {} while there is none."""
    try:
        return dict(in_pods.sandbox.admin.get(f"{PODS}/{name}"))
    except ApiError:
        return {}


def is_no_beginner(in_pods: InPods) -> bool:
    """Whether the worker has been ready for so long that Slurm should have it."""
    conditions = pod(in_pods)["status"]["conditions"]
    (ready,) = (condition for condition in conditions if condition["type"] == "Ready")
    since = datetime.fromisoformat(ready["lastTransitionTime"])
    return bool(SystemClock().now() - since > timedelta(seconds=35))


def is_idle(in_pods: InPods, node: str = NODE) -> bool:
    return in_pods.run("sinfo", "-hN", "-n", node, "-o", "%T").split() == ["idle"]


def started(in_pods: InPods, *options: str) -> list[str]:
    """Submit a long job to the worker for each option, and wait until all run; return their ids."""
    what = ("sbatch", "--parsable", "--output=/dev/null", "-n1", "--mem=10", "-w", NODE)
    jobs = [in_pods.run(*what, option, "--wrap", "sleep 600").strip() for option in options]
    for job in jobs:
        wait_until(
            lambda job=job: in_pods.state(job) == "RUNNING",  # type: ignore[misc]  # bound now
            STARTS_S,
            sandbox=in_pods.sandbox,
        )
    return jobs


def is_requeued(in_pods: InPods, job: str) -> bool:
    return " Restarts=1 " in in_pods.run("scontrol", "show", "job", job)


def login(in_pods: InPods, *command: str) -> str:
    def run(verb: str, *words: str) -> str:
        what = ("deployment/site-login", "-c", "login", "--", *words)
        return in_pods.sandbox.kubectl("-n", NAMESPACE, verb, *what)

    return in_pods.tries(run, *command)


def change(in_pods: InPods, patch: dict[str, Any]) -> None:
    what = (f"-p={json.dumps(patch)}", "--type=merge")
    in_pods.sandbox.kubectl("-n", NAMESPACE, "patch", "slurmcluster/site", *what)


def test_its_pods_are_not_the_first_to_be_evicted(in_pods: InPods) -> None:
    found = in_pods.sandbox.admin.get(PODS)["items"]
    assert len(found) == 4  # slurmctld, slurmrestd, login, a worker

    for each in found:
        spec, name = each["spec"], each["metadata"]["name"]
        assert each["status"]["qosClass"] == "Burstable", name
        assert spec["priorityClassName"] == "slurm-bridge-operator-slurm", name
        assert spec["priority"] == 1_000_000, name
        for container in spec["containers"]:
            assert {"cpu", "memory"} <= {*container["resources"]["requests"]}, container["name"]
        for container in spec.get("initContainers", ()):  # CPU would cost a hybrid node a whole one
            assert {"memory"} == {*container["resources"]["requests"]}, container["name"]


def test_slurmctld_without_its_state_has_all_again_and_nobody_says_that_all_is_well_before(
    in_pods: InPods,
) -> None:
    sandbox = in_pods.sandbox
    wait_until(lambda: is_no_beginner(in_pods), STARTS_S, sandbox=sandbox)
    started(in_pods, "--requeue")
    worker = pod(in_pods)["metadata"]["uid"]
    before = pod(in_pods, "site-controller-0")["metadata"]["uid"]

    with in_pods.frozen("slurmd"):  # it does not register before that was seen
        sandbox.kubectl("-n", NAMESPACE, "delete", "pod", "site-controller-0")
        wait_until(
            lambda: (
                pod(in_pods, "site-controller-0").get("metadata", {}).get("uid", before) != before
                and in_pods.run("squeue", "-h", "-o", "queue: %i") == ""
                and in_pods.run("sinfo", "-hN", "-o", "%N") == ""
                and "is UP" in in_pods.run("scontrol", "ping")
            ),
            STARTS_S,
            sandbox=sandbox,
        )
        lacks = f"{NODE} is ready but not registered in Slurm"
        wait_until(lambda: lacks in stands(in_pods)[1], STARTS_S, sandbox=sandbox)
        assert stands(in_pods)[0] == "False"
        assert in_pods.condition("nodesets", NODE_SET, "Ready")[0] == "False"
        assert in_pods.condition("nodesets", NODE_SET, "SlurmKnown")[0] == "False"

    wait_until(lambda: is_idle(in_pods), REGISTERS_S, sandbox=sandbox)
    wait_until(lambda: login(in_pods, "srun", "hostname") == f"{NODE}\n", REGISTERS_S)
    assert NODE in login(in_pods, "sinfo", "-hN", "-o", "%N")
    wait_until(lambda: stands(in_pods)[0] == "True", STARTS_S, sandbox=sandbox)
    assert pod(in_pods)["metadata"]["uid"] == worker
    assert pod(in_pods)["status"]["containerStatuses"][0]["restartCount"] == 0


def test_login_pods_and_workers_have_changes_after_slurmctld_has_lost_its_state(
    in_pods: InPods,
) -> None:
    """After the test above."""
    change(in_pods, {"spec": {"config": {"TCPTimeout": 7}}})

    sees = ("sh", "-c", "grep -hs TCPTimeout=7 /run/slurm/conf/*; true")
    wait_until(lambda: login(in_pods, *sees), STARTS_S, sandbox=in_pods.sandbox)
    worker = ("-n", NAMESPACE, "exec", POD, "-c", "slurmd", "--", *sees)
    wait_until(lambda: in_pods.sandbox.kubectl(*worker), STARTS_S, sandbox=in_pods.sandbox)


def test_jobs_of_a_worker_that_is_deleted_by_force_do_not_run_for_ever(in_pods: InPods) -> None:
    sandbox, first = in_pods.sandbox, pod(in_pods)["metadata"]["uid"]
    # They have just begun: slurmctld would not miss them, and slurm-operator may not have seen them.
    fails, begins_anew = started(in_pods, "--no-requeue", "--requeue")
    sandbox.kubectl("-n", NAMESPACE, "delete", "pod", POD, "--force", "--grace-period=0")

    wait_until(
        lambda: pod(in_pods).get("metadata", {}).get("uid", first) != first,
        STARTS_S,
        sandbox=sandbox,
    )
    assert LOST_JOBS in pod(in_pods)["metadata"]["annotations"]
    wait_until(lambda: in_pods.state(fails) == "NODE_FAIL", MISSES_S, sandbox=sandbox)
    wait_until(lambda: is_requeued(in_pods, begins_anew), MISSES_S, sandbox=sandbox)
    in_pods.run("scancel", begins_anew)
    wait_until(lambda: is_idle(in_pods), STARTS_S, sandbox=sandbox)


def test_a_worker_without_the_device_that_it_promises_is_not_ready(in_pods: InPods) -> None:
    scaled = [dict(node, replicas=1) for node in CLUSTER["spec"]["nodes"]]
    change(in_pods, {"spec": {"nodes": scaled}})
    wait_until(
        lambda: in_pods.condition("nodesets", "site-worker-gpu", "Ready")[1].startswith("1 of 1"),
        STARTS_S,
        sandbox=in_pods.sandbox,
    )

    said = "Slurm starts no jobs on gpu-0: gres/gpu count reported lower than configured (0 < 1)"
    wait_until(
        lambda: said in in_pods.condition("nodesets", "site-worker-gpu", "Ready")[1],
        STARTS_S,
        sandbox=in_pods.sandbox,
    )
    assert in_pods.condition("nodesets", "site-worker-gpu", "Ready")[0] == "False"
    wait_until(lambda: said in stands(in_pods)[1], STARTS_S, sandbox=in_pods.sandbox)
    change(in_pods, {"spec": {"nodes": CLUSTER["spec"]["nodes"]}})
    wait_until(lambda: stands(in_pods)[0] == "True", STARTS_S, sandbox=in_pods.sandbox)


def test_at_memory_pressure_others_go_first_and_jobs_of_an_evicted_worker_begin_anew(
    in_pods: InPods,
) -> None:
    sandbox, first = in_pods.sandbox, pod(in_pods)["metadata"]["uid"]
    spec = running(["dd if=/dev/zero of=/scratch/zeros bs=1M count=300; sleep 600"], node="real-1")
    spec["volumes"][0]["emptyDir"] = {"medium": "Memory"}
    spec["containers"][0]["resources"] = {}
    spec["tolerations"] = TOLERATES
    other = {"metadata": {"name": "other"}, "spec": spec}
    sandbox.admin.create("/api/v1/namespaces/default/pods", other)
    filled = ("-n", "default", "exec", "other", "--", "stat", "-c", "%s", "/scratch/zeros")
    wait_until(
        lambda: in_pods.tries(lambda *_: sandbox.kubectl(*filled)) == f"{300 << 20}\n",
        STARTS_S,
        sandbox=sandbox,
    )
    (job,) = started(in_pods, "--requeue")

    def has_gone(where: str) -> bool:
        found = sandbox.admin.get(where)["items"]
        return any(each["status"].get("reason") == "Evicted" for each in found)

    try:
        sandbox.press("real-1", "memory")
        wait_until(lambda: has_gone("/api/v1/namespaces/default/pods"), STARTS_S, sandbox=sandbox)
        assert pod(in_pods)["metadata"]["uid"] == first
        assert in_pods.state(job) == "RUNNING"
        sandbox.press("real-1", "memory")
        wait_until(
            lambda: pod(in_pods).get("metadata", {}).get("uid", first) != first,
            STARTS_S,
            sandbox=sandbox,
        )
    finally:
        sandbox.press("real-1", "none")

    wait_until(lambda: is_requeued(in_pods, job), MISSES_S, sandbox=sandbox)
    assert LOST_JOBS in pod(in_pods)["metadata"]["annotations"]
    in_pods.run("scancel", job)
    wait_until(lambda: is_idle(in_pods), STARTS_S, sandbox=sandbox)


def test_a_namespace_that_is_deleted_under_a_job_goes_after_it(in_pods: InPods) -> None:
    """The last test: nothing is left."""
    sandbox = in_pods.sandbox
    job = in_pods.submit(NODE, JOB_S)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)

    sandbox.kubectl("delete", "namespace", NAMESPACE, "--wait=false")

    def is_gone() -> bool:
        try:
            return not sandbox.admin.get(f"/api/v1/namespaces/{NAMESPACE}")
        except ApiError:
            return True

    wait_until(is_gone, GOES_S, sandbox=sandbox)
