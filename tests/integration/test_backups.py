"""Kubernetes, Slurm, or both come back from backups of different age: what goes on there is put in step, and nothing else is touched.

On a sandbox of our own. Our services run all the time; nobody tells them.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sandbox.options import Options
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests import backups
from tests.integration.lookalikes import submit_again
from tests.integration.worlds import LIVE, Job, Worlds, condition, job_id
from tests.servers import fresh_namespace, running_sandbox, wait_until
from tests.soak import contracts

_IN_STEP_WITHIN_S = 180.0
_HELD = {"slurmjob.slinky.slurm.net/hold": "true"}


@pytest.fixture
def world() -> Iterator[Worlds]:
    options = Options(accounting=True, nodes=3)
    with (
        running_sandbox(options) as sandbox,
        fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name,
    ):
        yield Worlds(sandbox, name)


def run(worlds: Worlds, *pods: str) -> dict[str, int]:
    """Pods that run; their jobs' ids by name."""
    for name in pods:
        worlds.submit(name)
    found = {name: job_id(worlds.await_phase(name, "Running")) for name in pods}
    return {name: id_ for name, id_ in found.items() if id_ is not None}


def go(worlds: Worlds, *pods: str) -> None:
    """Somebody deletes them."""
    for name in pods:
        worlds.delete(name)
    for name in pods:
        worlds.await_gone(name)


def end(worlds: Worlds, name: str) -> None:
    """Its container ends, as its kubelet says, and somebody cleans up."""
    pod = worlds.await_phase(name, "Running")
    (status,) = pod["status"]["containerStatuses"]
    since = status["state"]["running"]["startedAt"]
    over = {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": since}
    ended = {**status, "state": {"terminated": over}}
    worlds.set_status(name, {"phase": "Succeeded", "containerStatuses": [ended]})
    worlds.await_accounted(pod["metadata"]["uid"])
    go(worlds, name)


def others(worlds: Worlds, stack: ExitStack) -> set[int]:
    """Jobs that are none of ours: a stranger's, and two that look like ours."""
    stranger = stack.enter_context(worlds.strangers_on("node-2"))
    uid = worlds.submit("model", annotations=_HELD)
    model = worlds.await_live(uid)
    assert model.identity is not None
    abroad = replace(model, identity=replace(model.identity, cluster=ClusterId("another")))
    looks = {
        submit_again(worlds.sandbox, abroad, hold=True),
        submit_again(worlds.sandbox, model, hold=True, is_external=False),
    }
    go(worlds, "model")
    return {*stranger.values(), *looks}


def await_in_step(worlds: Worlds, *pods: str) -> None:
    """Exactly these pods run, each with its one placeholder, and no other placeholder lives."""

    def breaches() -> list[str]:
        listed = worlds.sandbox.admin.get(f"{worlds.path}/pods")["items"]
        found = msgspec.convert(listed, list[contracts.Pod])
        ours = [job for job in worlds.queue() if _is_ours(worlds, job)]
        return [
            *(
                f"{pod.name} is {pod.status.phase}"
                for pod in found
                if pod.status.phase != "Running"
            ),
            *contracts.placements(found, ours),
            *({pod.name for pod in found} ^ set(pods)),
        ]

    last: list[str] = []

    def is_in_step() -> bool:
        last[:] = breaches()
        return not last

    try:
        wait_until(is_in_step, _IN_STEP_WITHIN_S)
    except AssertionError:
        raise AssertionError(f"{last}\n{worlds.sandbox.log_tails()}") from None


def _is_ours(worlds: Worlds, job: Job) -> bool:
    identity = job.identity
    return (
        identity is not None
        and identity.namespace == worlds.namespace
        and identity.cluster != "another"
        and job.reason != "JobHeldUser"
    )


def live(worlds: Worlds) -> set[int]:
    return {job.id for job in worlds.queue() if job.state in LIVE}


def uid(worlds: Worlds, name: str) -> str:
    return str(worlds.await_pod(name, bool)["metadata"]["uid"])


def test_kubernetes_comes_back_older_than_slurm(world: Worlds, tmp_path: Path) -> None:
    with ExitStack() as stack:
        strangers = others(world, stack)
        before = run(world, "runs", "deleted", "cancelled", "ended")
        ends = {name: uid(world, name) for name in ("deleted", "cancelled", "ended")}
        waits = world.submit("waits", annotations=_HELD)
        waiting = world.await_live(waits)
        backups.keep_kubernetes(world.sandbox, tmp_path / "etcd")
        run(world, "younger")
        younger = uid(world, "younger")
        go(world, "deleted")
        world.scancel(before["cancelled"])
        world.await_gone("cancelled")
        end(world, "ended")
        world.scontrol("release", str(waiting.id))
        placed = world.await_phase("waits", "Running")

        backups.put_back_kubernetes(world.sandbox, tmp_path / "etcd")

        await_in_step(world, "runs", "waits")
        runs, waits_again = world.await_pod("runs", bool), world.await_pod("waits", bool)
        assert before["runs"] == job_id(runs)
        assert waiting.id == job_id(waits_again), "it was placed by the job that had placed it"
        assert placed["spec"]["nodeName"] == waits_again["spec"]["nodeName"]
        assert "True" == condition(waits_again).get("status", "True")
        assert "CANCELLED" == world.await_accounted(younger).state
        told = {name: world.await_accounted(of).state for name, of in ends.items()}
        assert {"deleted": "CANCELLED", "cancelled": "CANCELLED", "ended": "COMPLETED"} == told
        assert strangers <= live(world)


@pytest.mark.parametrize("older", ["slurm", "kubernetes"])
def test_both_come_back_and_one_is_older(world: Worlds, tmp_path: Path, older: str) -> None:
    keep = {"slurm": backups.keep_slurm, "kubernetes": backups.keep_kubernetes}
    newer = "kubernetes" if older == "slurm" else "slurm"
    with ExitStack() as stack:
        strangers = others(world, stack)
        before = run(world, "runs", "gone-between", "gone-after")
        keep[older](world.sandbox, tmp_path / older)
        before |= run(world, "between")
        go(world, "gone-between")
        keep[newer](world.sandbox, tmp_path / newer)
        run(world, "after")
        go(world, "gone-after")

        backups.put_back_slurm(world.sandbox, tmp_path / "slurm")
        backups.put_back_kubernetes(world.sandbox, tmp_path / "kubernetes")

        if older == "slurm":  # has forgotten a job whose pod Kubernetes still has
            await_in_step(world, "runs", "gone-after", "between")
        else:  # has forgotten a pod whose job Slurm still has
            await_in_step(world, "runs", "gone-after")
        kept = {name: job_id(world.await_pod(name, bool)) for name in ("runs", "gone-after")}
        assert {name: before[name] for name in kept} == kept
        assert strangers <= live(world)
