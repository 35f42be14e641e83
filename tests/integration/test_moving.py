"""`docs/migration.md`, walked: pods, jobs and a node as SchedMD's bridge leaves them are ours in the end, unharmed."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox import nss
from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.slurm_rest import API, credentials
from slurmruntime.values import names
from tests import pages
from tests.integration.machines import PATIENCE_S, Machine, a_machine
from tests.integration.tampering import BREAK_GLASS, refusal, tear
from tests.integration.worlds import Job, Worlds, container, job_id, played
from tests.pages import Reader
from tests.servers import wait_until

PAGE = "migration.md"
NOT_RUN = {"helm uninstall slurm-bridge -n slinky": "SchedMD's programs are not here"}
OURS = ("extender", "controllers")


@dataclass(frozen=True, slots=True)
class Predecessor:
    """What SchedMD's bridge writes, on both sides."""

    sandbox: Sandbox
    worlds: Worlds
    medic: Api
    node: Machine
    """One that it has registered, with its capacity."""

    def register(self) -> None:
        """Register the node: no mark says of which cluster it is."""
        size = ("CPUs=8", "RealMemory=16000", "NodeAddr=127.0.0.1", "Feature=slurm-bridge")
        self.worlds.scontrol("create", f"NodeName={self.node.name}", "State=External", *size)

    def submit(self, nodes: int, *pods: str, required: str, hold: bool = False) -> int:
        """Its job: no environment, no script; it is marked by the names of its pods."""
        memory = {"set": True, "infinite": False, "number": 100}
        listed = [f"{self.worlds.namespace}/{pod}" for pod in pods]
        job: dict[str, Any] = {
            "flags": ["EXTERNAL_JOB"],
            "name": "theirs",
            "current_working_directory": "/tmp",  # noqa: S108  # theirs
            "user_id": nss.JOB_USER.name,
            "group_id": nss.JOB_USER.name,
            "account": nss.JOB_USER.name,
            "nodes": str(nodes),
            "maximum_nodes": nodes,
            "tasks_per_node": 1,
            "cpus_per_task": 1,
            "memory_per_node": memory,
            "required_nodes": required.split(","),
            "partition": "slurm-bridge",
            "hold": hold,
            "admin_comment": json.dumps({"pods": listed}),
        }
        answer = httpx.post(
            f"{self.sandbox.slurmrestd_url}/slurm/{API}/job/submit",
            json={"job": job},
            headers=credentials(self.sandbox.instance),
            trust_env=False,
        )
        job_id = int(answer.raise_for_status().json()["job_id"])
        if not hold:
            wait_until(lambda: self._runs(job_id), PATIENCE_S, sandbox=self.sandbox)
        return job_id

    def _runs(self, job_id: int) -> bool:
        return any((job_id, "RUNNING") == (job.id, job.state) for job in self.worlds.queue())

    def place(self, name: str, job: int, node: str = "", *, seconds: float | None = None) -> str:
        """A pod with its marks, bound if it has a node; returns its uid."""
        notes = {names.NODE_ANNOTATION: node} if node else {}
        tolerated = {"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}
        body = {
            "metadata": {
                "name": name,
                "labels": {names.JOB_ID_LABEL: str(job)},
                "annotations": {**notes, **played(seconds=seconds)},
                "finalizers": [names.SCHEDMDS_FINALIZER],
            },
            "spec": {
                "schedulerName": names.SCHEDULER_NAME,
                "containers": [container()],
                "restartPolicy": "Never",
                "terminationGracePeriodSeconds": 1,
                "tolerations": [tolerated],
            },
        }
        uid = self.medic.create(f"{self.worlds.path}/pods", body)["metadata"]["uid"]
        if node:
            target = {"target": {"kind": "Node", "name": node}, "metadata": {"name": name}}
            self.medic.create(f"{self.worlds.path}/pods/{name}/binding", target)
            self.worlds.await_phase(name, "Running")
        return str(uid)


@pytest.fixture
def theirs(full_sandbox: Sandbox, worlds: Worlds) -> Iterator[Predecessor]:
    """Our programs do not run, as they are not installed yet; our policies are there, and let the medic pass."""
    # Once they are stopped, nobody ends what earlier tests have left.
    wait_until(lambda: not any(_is_for_pods(job) for job in worlds.queue()), PATIENCE_S)
    for service in OURS:
        full_sandbox.stop(service)
    kubeconfig = full_sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)
    wanted = {names.EXTERNAL_NODE_LABEL: "true"}
    with a_machine(full_sandbox, labels=wanted) as machine, Api(kubeconfig) as medic:
        yield Predecessor(full_sandbox, worlds, medic, machine)
        for service in OURS:
            if full_sandbox.status()[service].pid is None:
                full_sandbox.start(service)
    machine.await_not_in_slurm()


@pytest.fixture
def reader(full_sandbox: Sandbox, worlds: Worlds, tmp_path: Path) -> Reader:
    medic = full_sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)
    environment = {**full_sandbox.env, "KUBECONFIG": str(medic)}
    here = {"namespace research": f"namespace {worlds.namespace}"}
    return replace(pages.reader(tmp_path, environment), in_place_of=here)


def test_what_runs_under_schedmds_bridge_is_ours_without_a_restart(
    theirs: Predecessor, reader: Reader
) -> None:
    sandbox, worlds, node = theirs.sandbox, theirs.worlds, theirs.node
    theirs.register()
    single = theirs.submit(1, "single", required=node.name)
    gang = theirs.submit(2, "left", "right", required="node-0,node-1")
    waiting = theirs.submit(1, "waits", required=node.name, hold=True)
    uids = {
        "single": theirs.place("single", single, node.name),
        "left": theirs.place("left", gang, "node-0"),
        "right": theirs.place("right", gang, "node-1"),
    }
    theirs.place("waits", waiting)
    theirs.place("forged", single, node.name)

    said = walk(reader)

    dry, done = (said[f"kubectl slurm take-over{more}"] for more in ("", " --yes"))
    for pod in ("single", "left", "right"):
        assert f"{worlds.namespace}/{pod}" in dry
    assert dry == done
    assert f"job {single} does not carry the mark of SchedMD's bridge for it" in done
    for service in OURS:
        sandbox.start(service)

    # Whose they are, both sides say; nobody was restarted.
    for name, uid in uids.items():
        taken = worlds.await_pod(name, is_taken_over)
        assert (uid, "Running") == (taken["metadata"]["uid"], taken["status"]["phase"])
        assert names.SCHEDMDS_FINALIZER not in taken["metadata"]["finalizers"]
    assert single == worlds.await_live(uids["single"]).id
    ours = {job.id: job for job in worlds.queue()}
    members = (ours[gang].identity or fail()).pods
    assert {uids["left"], uids["right"]} == set(members)
    # In Slurm's order of the nodes, which is not that of their names.
    for name in ("left", "right"):
        rank = worlds.await_pod(name, bool)["metadata"]["annotations"][names.RANK_ANNOTATION]
        assert uids[name] == members[int(rank)]
    assert "CANCELLED" == ours[waiting].state
    # What was left keeps its node from new jobs, until it is gone.
    tear(worlds, "forged")
    node.await_in_service()

    # From here on they live as pods of ours do.
    worlds.delete("single")
    assert (single, "CANCELLED") == over(worlds, uids["single"])
    worlds.await_gone("single")
    for name in ("left", "right"):
        worlds.set_status(name, terminated())
    uid = (ours[gang].identity or fail()).key
    assert (gang, "COMPLETED") == over(worlds, uid)
    # What waited is created again by its controller, and is placed.
    worlds.delete("waits")
    worlds.await_gone("waits")
    wait_until(lambda: "" == refused(worlds), PATIENCE_S, sandbox=sandbox)
    again = worlds.submit("waits")
    assert job_id(worlds.await_phase("waits", "Running")) == worlds.await_live(again).id


def walk(reader: Reader) -> dict[str, str]:
    """Type what the page says, up to our own release's move; what each command printed."""
    said: dict[str, str] = {}
    fails = replace(
        reader,
        expected={
            "kubectl slurm take-over": 2,
            "kubectl slurm take-over --yes": 2,
            "kubectl slurm doctor": 2,
        },
    )
    for block in pages.blocks(PAGE):
        if block.language == "yaml":
            (reader.folder / "pause.yaml").write_text(block.text)
        if "helm get values" in block.text:
            return said
        for command in block.commands() if block.language == "sh" else ():
            if command not in NOT_RUN:
                said[command] = fails.types(command)
    raise AssertionError("the page does not say how to move our own older release")


def refused(worlds: Worlds) -> str:
    """What a policy that was deleted a moment ago still says against a pod."""
    body = {"metadata": {"name": "probe"}, "spec": {"containers": [container()]}}
    return refusal(worlds.sandbox.admin, "POST", f"{worlds.path}/pods?dryRun=All", body)


def _is_for_pods(job: Job) -> bool:
    return job.is_live and job.identity is not None and bool(job.identity.pods)


def is_taken_over(pod: dict[str, Any]) -> bool:
    return names.FINALIZER in pod["metadata"]["finalizers"]


def terminated() -> dict[str, Any]:
    """As a kubelet reports the end."""
    state = {"terminated": {"exitCode": 0, "startedAt": "2026-01-01T00:00:00Z"}}
    return {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": state}]}


def over(worlds: Worlds, uid: str) -> tuple[int, str]:
    job = worlds.await_accounted(uid)
    return job.id, job.state


def fail() -> Any:
    raise AssertionError("the job has no identity")
