"""A partition that goes, whatever way, keeps the jobs that run or wait in it, and goes after them."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from sandbox.image.slurm import SlurmImage
from sandbox.operator.serving import SLURM_CONF
from tests.realnodes import slurm_objects
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

IN_FORCE_S = 240.0
"""Three configurations one after the other, each some time after the kubelet's last look."""
OLD = "PartitionName=old Nodes=workers\n"


def extra(name: str, replicas: int, hostname: str = "") -> dict[str, Any]:
    return {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "controllerRef": {"name": "site"},
            "partition": {"enabled": True},
            **({"template": {"spec": {"hostname": hostname}}} if hostname else {}),
        },
    }


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images, slurm_conf=OLD) as found:
        found.scale("workers", 1)  # a machine has room for one
        for name, replicas in (("renamed", 1), ("deleted", 0)):
            body = json.dumps(extra(name, replicas))
            found.sandbox.kubectl("-n", NAMESPACE, "apply", "-f", "-", stdin=body)
        wait_until(
            lambda: all(has_room(found, each) for each in ("old", "workers", "renamed")),
            IN_FORCE_S,
            sandbox=found.sandbox,
        )
        yield found


def partitions(in_pods: InPods) -> dict[str, tuple[str, str]]:
    """Availability and number of nodes of each."""
    lines = in_pods.run("sinfo", "-h", "-s", "-o", "%R %a %D").splitlines()
    return {name: (state, nodes) for name, state, nodes in map(str.split, lines)}


def has_room(in_pods: InPods, partition: str) -> bool:
    return partitions(in_pods).get(partition, ("", "0"))[1] != "0"


def has_moved(in_pods: InPods, job: str) -> bool:
    """Move a job; without associations, slurmctld often answers with an old error of the thread that it asks."""
    in_pods.run("scontrol", "update", f"jobid={job}", "partition=new")
    return in_pods.run("squeue", "-h", "-j", job, "-o", "%P").strip() == "new"


def change(in_pods: InPods, what: str, spec: dict[str, Any]) -> None:
    patch = f"-p={json.dumps({'spec': spec})}"
    in_pods.sandbox.kubectl("-n", NAMESPACE, "patch", what, "--type=merge", patch)


def test_it_stays_until_its_jobs_have_ended_and_then_goes(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    flags = ("--parsable", "--output=/dev/null", "--mem=10", "-n1")
    going = ("old", "workers", "renamed", "deleted")
    runs = [
        in_pods.run(
            "sbatch", *flags, "-p", name, "--wrap", "sleep 40; srun true; sleep 110"
        ).strip()
        for name in ("old", "workers", "renamed")
    ]
    holds = [
        in_pods.run("sbatch", *flags, "--hold", "-p", name, "--wrap", "true").strip()
        for name in going
    ]
    assert all((*runs, *holds))
    wait_until(
        lambda: [in_pods.state(job) for job in runs] == ["RUNNING"] * 3, STARTS_S, sandbox=sandbox
    )

    change(
        in_pods,
        "controllers.slinky.slurm.net/site",
        {"extraConf": SLURM_CONF + "PartitionName=new Nodes=workers Default=YES\n"},
    )
    change(in_pods, "nodesets.slinky.slurm.net/workers", {"partition": {"enabled": False}})
    change(
        in_pods, "nodesets.slinky.slurm.net/renamed", {"template": {"spec": {"hostname": "other-"}}}
    )
    sandbox.kubectl("-n", NAMESPACE, "delete", "nodesets.slinky.slurm.net/deleted", "--wait=false")

    wait_until(
        lambda: [partitions(in_pods).get(each) for each in going] == [("down", "0")] * 4,
        IN_FORCE_S,
        sandbox=sandbox,
    )
    assert ["RUNNING"] * 3 == [in_pods.state(job) for job in runs]
    assert ["PENDING"] * 4 == [in_pods.state(job) for job in holds]
    wait_until(
        lambda: in_pods.condition("controllers", "site", "Configured")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )
    said = in_pods.condition("controllers", "site", "Configured")[1]
    assert "is being removed and stays as State=DOWN until no job has it" in said
    assert "scancel --partition=" in said

    wait_until(lambda: has_moved(in_pods, holds[0]), STARTS_S, sandbox=sandbox)
    for name in going:
        in_pods.run("scancel", f"--partition={name}", "--state=PENDING")
    wait_until(
        lambda: not set(going) & partitions(in_pods).keys(), IN_FORCE_S + 300, sandbox=sandbox
    )
    states = {job: state for job, state, *_ in in_pods.accounted()}
    assert {"COMPLETED"} == {states[job] for job in runs}
    assert "PENDING" == in_pods.state(holds[0])
    wait_until(
        lambda: "digest" in in_pods.condition("controllers", "site", "Configured")[1],
        STARTS_S,
        sandbox=sandbox,
    )


def test_a_cluster_that_gets_its_first_partitions_keeps_its_jobs_and_those_that_are_suspended(
    in_pods: InPods,
) -> None:
    sandbox = in_pods.sandbox
    for name in ("workers", "renamed"):
        in_pods.scale(name, 0)  # for room
    whole = replace(in_pods, namespace="whole")
    sandbox.kubectl("create", "namespace", whole.namespace)
    sandbox.kubectl(
        "-n", whole.namespace, "apply", "-f", "-", stdin=json.dumps(slurm_objects.CLUSTER)
    )
    wait_until(lambda: has_room(whole, "all"), IN_FORCE_S, sandbox=sandbox)
    flags = ("--parsable", "--output=/dev/null", "--mem=10", "-n1")
    runs, stops = (
        whole.run("sbatch", *flags, "--wrap", "sleep 40; srun true; sleep 40").strip()
        for _ in range(2)
    )
    holds = whole.run("sbatch", *flags, "--hold", "--wrap", "true").strip()
    assert all((runs, stops, holds))
    wait_until(
        lambda: ["RUNNING"] * 2 == [whole.state(job) for job in (runs, stops)],
        STARTS_S,
        sandbox=sandbox,
    )
    whole.run("scontrol", "suspend", stops)
    assert "SUSPENDED" == whole.state(stops)

    patch = json.dumps({"spec": {"partitions": [{"name": "first"}]}})
    where = ("-n", whole.namespace, "patch", "slurmcluster/site", "--type=merge")
    sandbox.kubectl(*where, f"-p={patch}")
    wait_until(
        lambda: ("down", "0") == partitions(whole).get("all") and has_room(whole, "first"),
        IN_FORCE_S,
        sandbox=sandbox,
    )
    assert ["RUNNING", "SUSPENDED", "PENDING"] == [whole.state(job) for job in (runs, stops, holds)]
    truth, said = whole.condition("controllers", "site", "Configured")
    assert "True" == truth
    assert (
        "partition all is being removed and stays as State=DOWN until no job has it: 2 running"
        in said
    )
    new = whole.run("sbatch", *flags, "--wrap", "true").strip()
    wait_until(lambda: "COMPLETED" == whole.state(new), STARTS_S, sandbox=sandbox)

    wait_until(lambda: "COMPLETED" == whole.state(runs), IN_FORCE_S, sandbox=sandbox)
    whole.run("scancel", "--partition=all", "--state=PENDING")
    assert ("SUSPENDED", "down") == (whole.state(stops), partitions(whole)["all"][0])
    whole.run("scontrol", "resume", stops)
    wait_until(lambda: "COMPLETED" == whole.state(stops), IN_FORCE_S, sandbox=sandbox)
    wait_until(lambda: {"first"} == partitions(whole).keys(), IN_FORCE_S, sandbox=sandbox)
