"""`python -m benchmarks.floor.client`: place every pod of a namespace where Slurm starts its job, and check nothing.

For each pod: one submit, one look at its running job, one patch that pins and un-gates it, its Binding; after its end one
completion and the patch that releases it. For all of them together: lists of states, and kicks. So it is what slurm-bridge
writes, without what makes that safe: identity, policy, fit, views, retries, leases, metrics, logs.
"""

import asyncio
import time
from pathlib import Path

import msgspec
import typer
import uvloop

from bridge.domain.lifecycle.actions import Outcome
from bridge.slurm import complete, kick
from bridge.slurm.complete import ControllerHost, ControllerHosts
from bridge.slurm.kick import EndedJob
from slurmclient.watching import listing
from slurmruntime.kube.client import JSON_PATCH, KubeClient
from slurmruntime.slurm import submission, wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId

FINALIZER = GATE = "floor.test/waits"
_CONNECTIONS = 64
_TIMEOUT_S = 60.0
_WATCH_S = 600.0
_LIST_EVERY_S = 0.05
_KICK_EVERY_S = 0.15
"""As often as slurm-bridge does with 200 pods on an idle machine."""


class _Metadata(msgspec.Struct):
    name: str
    uid: str
    version: str = msgspec.field(name="resourceVersion")
    finalizers: list[str] = []


class _Status(msgspec.Struct):
    phase: str = ""


class _Pod(msgspec.Struct):
    metadata: _Metadata
    status: _Status


class _Event(msgspec.Struct):
    type: str
    object: _Pod


_event = msgspec.json.Decoder(_Event)
_job = msgspec.json.Decoder(wire.Job)


class Client:
    """Follows the pods of one namespace, each in a task of its own."""

    def __init__(self, kube: KubeClient, slurm: SlurmClient, port: int, path: str) -> None:
        """port: of slurmctld; path: of the pods."""
        self._kube = kube
        self._slurm = slurm
        self._controllers = ControllerHosts(
            ControllerHost(host="127.0.0.1", port=port, timeout_s=_TIMEOUT_S)
        )
        self._path = path
        self._ended: dict[str, asyncio.Event] = {}
        self._waiting: dict[JobId, asyncio.Event] = {}

    async def run(self) -> None:
        """Work until killed."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_slurm())
            async with self._kube.stream(
                self._path, params={"resourceVersion": "0"}, idle_timeout_s=_WATCH_S
            ) as lines:
                async for line in lines:
                    event = _event.decode(line)
                    meta = event.object.metadata
                    if event.object.status.phase == "Succeeded" and meta.name in self._ended:
                        self._ended[meta.name].set()
                    elif event.type == "ADDED":
                        self._ended[meta.name] = asyncio.Event()
                        group.create_task(self._live(meta))

    async def _live(self, meta: _Metadata) -> None:
        id_ = await submission.send(self._slurm, {"job": _description(meta.name)})
        self._waiting[id_] = asyncio.Event()
        await self._waiting[id_].wait()
        answer = await self._slurm.call(
            "job.get", "slurm_get_job", {"job_id": id_}, query={"flags": "ALL"}, answer=wire.Jobs
        )
        job = _job.decode((answer.jobs or [])[0])
        await self._patch(meta, _pin(id_, job.nodes))
        await self._kube.request(
            "POST",
            f"{self._path}/{meta.name}/binding",
            body={
                "metadata": {"name": meta.name, "uid": meta.uid},
                "target": {"kind": "Node", "name": job.nodes},
            },
        )
        await self._ended[meta.name].wait()
        await complete.complete(
            self._slurm, self._controllers, id_, Outcome(exit_code=0), sluid=None
        )
        await self._patch(meta, [{"op": "remove", "path": "/metadata/finalizers"}])

    async def _patch(self, meta: _Metadata, operations: list[dict[str, object]]) -> None:
        guard = {"op": "test", "path": "/metadata/uid", "value": meta.uid}
        await self._kube.request(
            "PATCH",
            f"{self._path}/{meta.name}",
            body=[guard, *operations],
            content_type=JSON_PATCH,
        )

    async def _follow_slurm(self) -> None:
        """List the states while a job waits, and kick slurmctld's scheduler as soon as a job has ended that can be named."""
        listed = None
        ended = await self._an_ended_job()
        kicked_at = 0.0
        while True:
            await asyncio.sleep(_LIST_EVERY_S)
            if not self._waiting:
                continue
            if time.monotonic() - kicked_at > _KICK_EVERY_S:
                kicked_at = time.monotonic()
                await kick.kick(self._slurm, self._controllers, ended)
            listed = await listing.all_jobs(self._slurm, before=listed)
            for id_ in [id_ for id_ in self._waiting if "RUNNING" in listed.states.get(id_, ())]:
                self._waiting.pop(id_).set()

    async def _an_ended_job(self) -> EndedJob:
        id_ = await submission.send(self._slurm, {"job": _description("first")})
        while "RUNNING" not in (await listing.states(self._slurm, [id_])).get(id_, ()):  # noqa: ASYNC110  # Slurm tells nobody
            await asyncio.sleep(_LIST_EVERY_S)
        await complete.complete(
            self._slurm, self._controllers, id_, Outcome(exit_code=0), sluid=None
        )
        return EndedJob(id_, None)


def _description(name: str) -> dict[str, object]:
    return {
        "flags": ["EXTERNAL_JOB"],
        "name": name,
        "admin_comment": "floor",
        "user_id": "0",
        "group_id": "0",
        "current_working_directory": "/",
        "tasks": 1,
        "minimum_nodes": 1,
        "maximum_nodes": 1,
        "cpus_per_task": 1,
        "memory_per_node": {"set": True, "infinite": False, "number": 64},
    }


def _pin(id_: JobId, node: str) -> list[dict[str, object]]:
    """Return what slurm-bridge's patch does: label, annotation, required affinity, no gate."""
    fields = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [fields]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    return [
        {"op": "test", "path": "/spec/schedulingGates/0/name", "value": GATE},
        {"op": "add", "path": "/metadata/labels", "value": {"floor.test/job": str(id_)}},
        {"op": "add", "path": "/metadata/annotations", "value": {"floor.test/node": node}},
        {"op": "add", "path": "/spec/affinity", "value": affinity},
        {"op": "remove", "path": "/spec/schedulingGates"},
    ]


def main(namespace: str, kubeconfig: str, slurm_url: str, token_file: Path, port: int) -> None:
    """Work until killed."""

    async def run() -> None:
        async with (
            KubeClient.open(
                kubeconfig,
                request_timeout_s=_TIMEOUT_S,
                user_agent="floor",
                connections=_CONNECTIONS,
            ) as kube,
            SlurmClient.open(
                slurm_url, token_file=token_file, connections=8, request_timeout_s=_TIMEOUT_S
            ) as slurm,
        ):
            await Client(kube, slurm, port, f"/api/v1/namespaces/{namespace}/pods").run()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run())


if __name__ == "__main__":
    typer.run(main)
