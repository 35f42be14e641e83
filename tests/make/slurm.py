"""Slurm as `bridge.slurm` speaks to it, in memory: jobs that are submitted, read, marked, changed, cancelled, completed; nodes.

A job that asks for nodes by name starts there as soon as these take jobs; no other starts by itself.

Takes the place of a `SlurmClient` (and of the `Completer`, which speaks to slurmctld itself), so what is asked for, and
how answers are read, is the product's own.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import SlurmJob
from slurmclient import errors
from slurmclient.api.operations import OPERATIONS
from slurmclient.wire.reading import Answer
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.slurm.errors import ALREADY_DONE, INVALID_NODE_NAME, JOB_FINISHED
from tests.make.slurm_nodes import Node, Nodes
from tests.make.trouble import Fault, Trouble

A = TypeVar("A", bound=Answer)

VERSION = 45
ENDED = ("CANCELLED", "COMPLETED", "FAILED", "NODE_FAIL", "TIMEOUT")


@dataclass(slots=True, kw_only=True)
class Job:
    """A job as slurmctld has it."""

    id: int
    comment: str
    state: str = "PENDING"
    """With flags behind it: `RUNNING CONFIGURING`."""
    nodes: str = ""
    tasks: int = 1
    limit_min: int | None = None
    ends_s: float = 0
    required: Sequence[str] = ()
    excluded: Sequence[str] = ()
    cpus_per_task: int = 1
    memory_mib: int = 0
    started_s: int = 0
    gres: str = ""
    """What it has on its node, with indexes: `gpu:1(IDX:0)`."""
    is_external: bool = True
    """False: a native job, which slurmd starts."""
    has_sluid: bool = True
    """Not before Slurm 25.11."""
    sluid: str = field(init=False)

    def __post_init__(self) -> None:
        self.sluid = f"s{self.id:013}" if self.has_sluid else ""

    def wired(self) -> dict[str, Any]:
        unlimited = {"set": False, "infinite": True, "number": 0}
        return {
            "job_id": self.id,
            "job_state": self.state.split(),
            "step_id": {"sluid": self.sluid},
            "flags": ["EXTERNAL_JOB"] if self.is_external else [],
            "admin_comment": self.comment,
            "state_reason": "Priority" if self.state == "PENDING" else "None",
            "nodes": self.nodes,
            "tasks": number(self.tasks),
            "priority": number(1),
            "submit_time": number(self.id),
            "start_time": number(self.started_s or self.id),
            "required_nodes": ",".join(self.required),
            "excluded_nodes": ",".join(self.excluded),
            "cpus_per_task": number(self.cpus_per_task),
            "cpus": number(self.tasks * self.cpus_per_task),
            "memory_per_node": number(self.memory_mib),
            "gres_detail": [self.gres] if self.gres else [],
            "user_name": "user",
            "group_name": "group",
            "end_time": number(self.ends_s),
            "time_limit": unlimited if self.limit_min is None else number(self.limit_min),
        }


def number(value: float) -> dict[str, object]:
    return {"set": True, "infinite": False, "number": value}


class Slurm:
    """slurmctld behind slurmrestd."""

    def __init__(
        self,
        trouble: Trouble,
        jobs: Sequence[Job],
        nodes: Sequence[Node] = (),
        *,
        partitions: Sequence[str] = (),
        next_id: int = 0,
    ) -> None:
        """next_id: which job id is given out next; 0 is the one after the last."""
        self._trouble = trouble
        self._next_id = next_id
        self.jobs = {job.id: job for job in jobs}
        self.nodes = Nodes(nodes, partitions=partitions)
        self.is_away = False
        """Nobody answers."""

    async def call(
        self,
        label: str,
        operation: str,
        path: Mapping[str, str | int] | None = None,
        *,
        answer: type[A],
        query: Mapping[str, object] | None = None,
        body: Any = None,
        user: str = "",
        is_repeatable: bool = False,
    ) -> A:
        del query, user, is_repeatable
        await asyncio.sleep(0)
        if self.is_away:
            raise _failure(label, Fault.REFUSED)
        method = OPERATIONS[operation].method
        where = OPERATIONS[operation].target(VERSION, path or {}, {})[0].partition(f".{VERSION}")[2]
        if method == "GET":
            found = self._read(label, where)
        else:
            found = self._trouble.write(
                f"{method} {where}",
                lambda: self._write(label, method, where, body),
                fail=lambda fault: _failure(label, fault),
            )
        return msgspec.json.decode(msgspec.json.encode(found), type=answer)

    async def each_of(
        self,
        label: str,
        operation: str,
        key: str,
        *,
        take: Callable[[bytes], None],
        answer: type[A],
        most_bytes: int,
        since: int | None = None,
    ) -> A | None:
        """Take the place of `SlurmClient.each_of`."""
        del most_bytes, since
        found = await self.call(label, operation, answer=answer)
        for each in getattr(found, key) or ():
            take(msgspec.json.encode(each))
        return found

    async def complete(self, job: SlurmJob, how: Outcome) -> None:
        """Take the place of `Completer.complete`."""
        await asyncio.sleep(0)
        self._trouble.write(
            f"complete {job.id}",
            lambda: self._end(self.jobs[job.id], "FAILED" if how.exit_code else "COMPLETED"),
            fail=lambda fault: _failure("job.complete", fault),
        )

    async def respond(self, node: SlurmNodeFacts, _now_s: int) -> None:
        """Take the place of `Responder.respond`."""
        await asyncio.sleep(0)
        there = self.nodes.by_name[node.name]
        self._trouble.write(
            f"respond {node.name}",
            lambda: there.states.discard("NOT_RESPONDING"),
            fail=lambda fault: _failure("node.respond", fault),
        )

    def _read(self, operation: str, path: str) -> dict[str, Any]:
        if path == "/diag/":
            return {"statistics": {"req_time_start": number(1)}}
        if path == "/conf":
            return {
                "slurm_conf": {"MaxJobId": 1_000_000},
                "slurm_conf_meta": {"NEXT_JOB_ID": number(self._following_id)},
            }
        if operation == "accounting.job":
            return {"jobs": []}
        shown = {
            name: node
            for name, node in self.nodes.by_name.items()
            if "FUTURE" not in node.states or operation == "node.list_all"
        }
        if path == "/nodes/":
            return {"nodes": [self._wired(node) for node in shown.values()]}
        if operation == "node.get":
            name = path.rsplit("/", 1)[-1]
            if name not in shown:
                raise errors.Declined(operation, "", error_number=0)
            return {"nodes": [self._wired(shown[name])]}
        if path == "/jobs/state/":
            listed = [
                {"job_id": str(job.id), "state": job.state.split()} for job in self.jobs.values()
            ]
            return {"jobs": listed}
        return {"jobs": [self._find(operation, path).wired()]}

    @property
    def _following_id(self) -> int:
        return max(self._next_id, max(self.jobs, default=0) + 1)

    def _wired(self, node: Node) -> dict[str, Any]:
        there = (job for job in self.jobs.values() if job.state == "RUNNING")
        held = sum(job.cpus_per_task for job in there if node.name in job.nodes.split(","))
        return node.wired(alloc_cpus=held)

    def _write(self, operation: str, method: str, path: str, body: Any) -> dict[str, Any]:
        if operation.startswith("node."):
            names = body["name"] if path == "/nodes/" else [path.rsplit("/", 1)[-1]]
            for name in names:
                self._change_node(operation, method, name, body)
            answer: dict[str, Any] = {}
        else:
            answer = self._change_job(operation, method, path, body)
        self._start_what_can()
        return answer

    def _change_node(self, operation: str, method: str, name: str, body: Any) -> None:
        if operation in ("node.create", "node.stand_in"):
            self.nodes.create(operation, body["node_conf"])
        elif method == "DELETE":
            self.nodes.delete(operation, name, is_busy=bool(self._running_on(name)))
        else:
            self.nodes.update(operation, name, body)
            if "DOWN" in self.nodes.by_name[name].states:
                for job in self._running_on(name):
                    self._end(job, "NODE_FAIL")

    def _running_on(self, name: str) -> list[Job]:
        running = (job for job in self.jobs.values() if job.state == "RUNNING")
        return [job for job in running if name in job.nodes.split(",")]

    def _start_what_can(self) -> None:
        for job in self.jobs.values():
            nodes = [self.nodes.by_name.get(name) for name in job.required]
            if job.state == "PENDING" and nodes and all(node and node.takes_jobs for node in nodes):
                job.state, job.nodes = "RUNNING", ",".join(dict.fromkeys(job.required))

    def _change_job(self, operation: str, method: str, path: str, body: Any) -> dict[str, Any]:
        if path == "/job/submit":
            asked = body["job"]
            job = Job(
                id=self._following_id,
                comment=asked["admin_comment"],
                tasks=asked.get("tasks", 1),
                required=asked.get("required_nodes", ()),
                cpus_per_task=asked.get("cpus_per_task", 1),
                memory_mib=asked.get("memory_per_node", {}).get("number", 0),
            )
            self.jobs[job.id] = job
            return {"job_id": job.id}
        job = self._find(operation, path)
        if method == "DELETE":
            is_over = job.state in ENDED
            self._end(job, "CANCELLED")
            return {"status": [{"error": {"code": ALREADY_DONE}}] if is_over else []}
        if job.state in ENDED:
            raise errors.Declined(operation, "over", error_number=JOB_FINISHED)
        if missing := {*job.required, *job.excluded} - {"", *self.nodes.by_name}:
            words = f"no node {missing}"
            raise errors.Declined(operation, words, error_number=INVALID_NODE_NAME)
        job.comment = body.get("admin_comment", job.comment)
        job.required = list(filter(None, body.get("required_nodes", job.required)))
        job.excluded = list(filter(None, body.get("excluded_nodes", job.excluded)))
        if (limit := body.get("time_limit")) and job.limit_min is not None:
            job.ends_s += 60 * (limit["number"] - job.limit_min)
            job.limit_min = limit["number"]
        return {}

    def _end(self, job: Job, state: str) -> None:
        if job.state not in ENDED:
            job.state = state

    def _find(self, operation: str, path: str) -> Job:
        ref = path.rsplit("/", 1)[-1]
        for job in self.jobs.values():
            if ref == str(job.id):  # no path takes a sluid before Slurm 26.05
                return job
        raise errors.TargetNotFound(operation, f"no job {ref}", status=404)


def _failure(operation: str, fault: Fault) -> errors.SlurmError:
    if fault is Fault.REFUSED:
        return errors.Unavailable(operation, "no connection")
    return errors.LostReply(operation, "no answer")
