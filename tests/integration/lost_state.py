"""slurmctld without the state that it had: who is there before, and how it is afterwards."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests import backups
from tests.integration.gang_pods import uid_of
from tests.integration.worlds import Manifest, Worlds, condition, job_id
from tests.servers import wait_until

NODES = 3
NODE_CPUS = Options().node_cpus
RESTORED_WITHIN_S = 60.0
SCHEDULERS_PASS_S = 2.5
"""Slurm looks every second for who could start."""
_PURGED_WITHIN_S = 60.0
"""slurmctld looks for what it may forget every half minute or so."""
HOUR = {"slurmjob.slinky.slurm.net/timelimit": "60"}


@dataclass(frozen=True, slots=True)
class Tenant:
    """A running pod, as it was before Slurm forgot it."""

    name: str
    uid: str
    node: str
    job: int
    sluid: str


def tenants(worlds: Worlds, *pods: str, cpus: str = "4", limit: bool = True) -> list[Tenant]:
    """Running pods that Slurm placed."""
    uids = {
        name: worlds.submit(name, cpus=cpus, annotations=HOUR if limit else None) for name in pods
    }
    return [_tenant(name, uid, worlds.await_phase(name, "Running")) for name, uid in uids.items()]


def _tenant(name: str, uid: str, pod: Manifest) -> Tenant:
    id_ = job_id(pod)
    assert id_ is not None
    return Tenant(name, uid, pod["spec"]["nodeName"], id_, notes(pod)[names.SLUID_ANNOTATION])


def notes(pod: Manifest) -> Mapping[str, str]:
    return dict(pod["metadata"].get("annotations", {}))


@contextmanager
def without(sandbox: Sandbox, *parts: str) -> Iterator[None]:
    """Parts are down, and come back."""
    for part in parts:
        sandbox.stop(part)
    try:
        yield
    finally:
        for part in reversed(parts):
            sandbox.start(part)


@contextmanager
def state_kept(sandbox: Sandbox, copy: Path) -> Iterator[None]:
    """Slurmctld's state as it is now is what it comes back from in the end."""
    backups.keep_slurm(sandbox, copy)
    try:
        yield
    finally:
        backups.put_back_slurm(sandbox, copy)


PART_OF_A_NODE = (
    "sbatch",
    "--parsable",
    "--external",
    "--cpus-per-task=4",
    "--mem=100",
    "--job-name=stranger",
    "--partition=slurm-bridge",
)


def strangers(sandbox: Sandbox, count: int, *more: str) -> list[int]:
    """Jobs of Slurm's other users that want whole nodes."""
    whole = (
        "sbatch",
        "--parsable",
        "--external",
        "--exclusive",
        "--mem=100",
        "-J",
        "stranger",
        "-t",
        "60",
        "-p",
        "slurm-bridge",
    )
    return [int(sandbox.run(*whole, *more)) for _ in range(count)]


@contextmanager
def room_elsewhere(worlds: Worlds) -> Iterator[None]:
    """A node out of service: where a partition has no node at all, Slurm refuses jobs instead of letting them wait."""
    shape = ("State=External", "NodeAddr=127.0.0.1", "CPUs=8", "RealMemory=1000")
    worlds.scontrol("create", "NodeName=elsewhere", *shape, f"Feature={names.BRIDGED_FEATURE}")
    try:
        worlds.scontrol("update", "NodeName=elsewhere", "State=DRAIN", "Reason=test")
        yield
    finally:
        worlds.scontrol("delete", "NodeName=elsewhere")


def states(worlds: Worlds, ids: list[int]) -> list[str]:
    queued = {job.id: job.state for job in worlds.queue()}
    return [queued.get(id_, "gone") for id_ in ids]


def await_restored(
    worlds: Worlds,
    *tenants: Tenant,
    within_s: float = RESTORED_WITHIN_S,
    besides: Collection[int] = (),
) -> None:
    """Each has another placeholder, on its own node, and says so; nothing else has happened to it.

    besides: jobs that have its identity and are not ours.
    """

    def is_restored(tenant: Tenant) -> bool:
        pod = worlds.pod(tenant.name)
        assert pod is not None
        assert tenant.uid == pod["metadata"]["uid"]
        assert "deletionTimestamp" not in pod["metadata"], condition(pod)
        live = [job for job in worlds.live(tenant.uid) if job.id not in besides]
        return (
            [(job_id(pod), "RUNNING", tenant.node)] == [(j.id, j.state, j.nodes) for j in live]
            and tenant.sluid != notes(pod)[names.SLUID_ANNOTATION]
            and condition(pod).get("status", "True") == "True"  # none: it was never told to wait
        )

    for tenant in tenants:
        wait_until(
            lambda tenant=tenant: is_restored(tenant),  # type: ignore[misc]  # bound at once
            within_s,
            sandbox=worlds.sandbox,
        )


def time_limit_min(worlds: Worlds, tenant: Tenant) -> int:
    (job,) = worlds.live(tenant.uid)
    (text,) = worlds.sandbox.run("squeue", "-h", "-j", str(job.id), "-o", "%l").split()
    hours, minutes, _ = ("0:" + text).split(":")[-3:]
    return int(hours) * 60 + int(minutes)


def await_gang_restored(
    worlds: Worlds, group: str, members: Collection[str], *, sizes: int = 1
) -> None:
    """Its members have another placeholder, all the same one, and nothing else has happened to them."""

    def is_restored() -> bool:
        live = worlds.live(uid_of(worlds, group))
        pods = [worlds.await_pod(name, bool) for name in members]
        assert not any("deletionTimestamp" in pod["metadata"] for pod in pods)
        return ["RUNNING"] * sizes == [job.state for job in live] and {live[0].id} == {
            job_id(pod) for pod in pods
        }

    wait_until(is_restored, RESTORED_WITHIN_S, sandbox=worlds.sandbox)


def allocated_cpus(worlds: Worlds) -> dict[str, int]:
    shown = worlds.sandbox.run("sinfo", "-N", "-h", "-O", "NodeHost:|,CPUsState:").split()
    lines = (line.split("|") for line in shown)
    counts = {node: int(state.split("/")[0]) for node, state in lines}
    return {node: count for node, count in counts.items() if count}
