"""List all of Slurm's jobs: for the command line, and for programs that need the nodes with jobs. It costs about 2 kB a job."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.model import identities
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase
from bridge.slurm import decode
from slurmclient.errors import Malformed
from slurmclient.wire import reading
from slurmclient.wire.reading import Answer, Unreadable
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values import hostlist
from slurmruntime.values.hostlist import HostlistSize
from slurmruntime.values.ids import JobId, SlurmNode


class _Job(Struct, frozen=True):
    """A job of GET /jobs/."""

    job_id: int
    job_state: list[str] = []
    name: str = ""
    user_name: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    flags: list[str] = []  # msgspec copies it
    admin_comment: str = ""
    state_reason: str = ""
    state_description: str = ""
    tres_req_str: str = ""
    nodes: str = ""
    priority: wire.Number = wire.NONE
    submit_time: wire.Number = wire.NONE
    start_time: wire.Number = wire.NONE
    end_time: wire.Number = wire.NONE


class _Jobs(Answer, frozen=True):
    """GET /jobs/; each of `jobs` is a `_Job`, decoded one by one."""

    jobs: list[msgspec.Raw] | None = None


class _Occupant(Struct, frozen=True):
    """The nodes of a job of GET /jobs/."""

    job_id: int = 0
    job_state: list[str] = []
    nodes: str = ""
    end_time: wire.Number = wire.NONE


MOST_JOBS_BYTES: Final = 128 * 2**20
"""Longest list of which little is stored: 60 000 jobs."""
MOST_LIVE: Final = 200_000
"""How many jobs may wait or run."""
MOST_PLACES: Final = 300_000
"""Nodes of all jobs, each counted once per job."""
_LONGEST_NAME: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """The nodes that have jobs."""

    by_node: Mapping[SlurmNode, datetime | None]
    """When the last of a node's jobs reaches its time limit; None if that is not known."""
    unreadable: str
    """Why the nodes of one of the jobs are unknown; "" if all are known."""


async def read_occupancy(client: SlurmClient) -> Occupancy:
    """Return the nodes of all jobs, except those that have certainly ended and left.

    The list is read in slices. Raises SlurmError if the jobs could not be read, or stand for
    more nodes than any Slurm has.
    """
    by_node: dict[SlurmNode, datetime | None] = {}
    room = MOST_PLACES

    def take(job: _Occupant) -> str:
        nonlocal room
        if not job.nodes and {"RUNNING", "SUSPENDED"} & set(job.job_state):
            return f"job {job.job_id} runs, and Slurm does not say where"
        try:
            names = hostlist.expand(job.nodes, most=HostlistSize(room, room * _LONGEST_NAME))
        except ValueError as error:
            return f"job {job.job_id}: {error}"
        room -= len(names)
        ends_at = decode.moment(job.end_time)
        for name in map(SlurmNode, names):
            known = by_node.get(name, ends_at)
            by_node[name] = None if known is None or ends_at is None else max(known, ends_at)
        return ""

    unreadable = await _each_live(client, _Occupant, take)
    return Occupancy(by_node=by_node, unreadable=unreadable)


class _Member(Struct, frozen=True):
    """The partitions of a job of GET /jobs/."""

    job_id: int
    job_state: list[str]
    partition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJob:
    """A job that may still wait, run or be ending."""

    id: JobId
    partitions: tuple[str, ...]
    waits: bool
    """True if it is not on any node yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveJobs:
    """All live jobs."""

    live: tuple[LiveJob, ...]
    unreadable: str
    """Why one of them could not be read; "" if all could."""


async def list_live(client: SlurmClient) -> LiveJobs:
    """Return all jobs, except those that have certainly ended and left.

    The list is read in slices. Raises SlurmError if the jobs could not be read, or are more
    than any Slurm has.
    """
    live_jobs: list[LiveJob] = []

    def take(job: _Member) -> str:
        if len(live_jobs) == MOST_LIVE:
            raise Malformed("job.list", f"expected at most {MOST_LIVE} live jobs, got more")
        names = tuple(filter(None, job.partition.split(",")))
        waits = "PENDING" in job.job_state and "COMPLETING" not in job.job_state
        live_jobs.append(LiveJob(id=JobId(job.job_id), partitions=names, waits=waits))
        return "" if names else f"Slurm does not say which partition job {job.job_id} has"

    unreadable = await _each_live(client, _Member, take)
    return LiveJobs(live=tuple(live_jobs), unreadable=unreadable)


class _Names(Struct, frozen=True):
    """The nodes that a job of GET /jobs/ names."""

    job_id: int = 0
    job_state: list[str] = []
    required_nodes: str = ""
    excluded_nodes: str = ""


async def jobs_naming(
    client: SlurmClient, nodes: Collection[SlurmNode]
) -> tuple[Mapping[SlurmNode, JobId], str]:
    """Return for each of these nodes a live job that requires or excludes it, if there is one.

    Second, return why the nodes of one of the jobs are unknown; "" if all are known.

    Raises:
        SlurmError: they could not be read.
    """
    by_node: dict[SlurmNode, JobId] = {}
    lists: dict[str, frozenset[str]] = {}
    room, wanted = MOST_PLACES, frozenset(nodes)

    def take(job: _Names) -> str:
        nonlocal room
        unreadable = ""
        for text in filter(None, (job.required_nodes, job.excluded_nodes)):
            try:
                if text not in lists:  # jobs of one sender have the same ones
                    names = hostlist.expand(text, most=HostlistSize(room, room * _LONGEST_NAME))
                    room -= len(names)
                    lists[text] = wanted.intersection(names)
            except ValueError as error:
                unreadable = f"job {job.job_id}: {error}"
                continue
            by_node.update(dict.fromkeys(map(SlurmNode, lists[text]), JobId(job.job_id)))
        return unreadable

    unreadable = await _each_live(client, _Names, take)
    return by_node, unreadable


_Listed = TypeVar("_Listed", _Occupant, _Member, _Names)


async def _each_live(
    client: SlurmClient, kind: type[_Listed], take: Callable[[_Listed], str]
) -> str:
    """Pass on each job that may not have left; return why one is unreadable, which `take` may say."""
    unreadable = ""

    def read_one(body: bytes) -> None:
        nonlocal unreadable
        read = reading.lenient(body, kind)
        if isinstance(read, Unreadable) or read.odd:
            unreadable = "a job in Slurm's list cannot be read"
        elif not _has_left(frozenset(read.value.job_state)):
            unreadable = take(read.value) or unreadable

    answer = await client.each_of(
        "job.list",
        "slurm_get_jobs",
        "jobs",
        take=read_one,
        answer=_Jobs,
        most_bytes=MOST_JOBS_BYTES,
    )
    if answer is None or answer.jobs is None:
        raise Malformed("job.list", "the response has no list of jobs")
    return unreadable


def _has_left(states: frozenset[str]) -> bool:
    try:
        return decode.phase_of(states) is JobPhase.ENDED and "COMPLETING" not in states
    except ValueError:
        return False  # a state that we do not know


async def listing(
    client: SlurmClient, *, on_unreadable: Callable[[str], None]
) -> tuple[QueuedJob, ...]:
    """Return every job Slurm still knows, including those that ended in the last minutes.

    on_unreadable: called with a message for each job that is omitted as it cannot be decoded.

    Raises:
        SlurmError: it could not be read.
    """
    answer = await client.call("job.list", "slurm_get_jobs", answer=_Jobs)
    if answer.jobs is None:
        raise Malformed("job.list", "the response has no list of jobs")
    queued: list[QueuedJob] = []
    for raw in answer.jobs:
        read = reading.lenient(bytes(raw), _Job)
        if isinstance(read, Unreadable):
            on_unreadable(read.why)
            continue
        try:
            queued.append(_queued(read.value))
        except Malformed as error:
            on_unreadable(str(error))
    return tuple(queued)


def _queued(job: _Job) -> QueuedJob:
    states = frozenset(job.job_state)
    try:
        phase = decode.phase_of(states)
        nodes = tuple(SlurmNode(name) for name in hostlist.expand(job.nodes))
    except ValueError as error:
        raise Malformed("job.list", f"job {job.job_id}: {error}") from error
    return QueuedJob(
        id=JobId(job.job_id),
        name=job.name,
        user=job.user_name,
        account=job.account,
        partition=job.partition,
        qos=job.qos,
        state=next(iter(job.job_state), ""),
        phase=phase,
        reason="" if job.state_reason == "None" else job.state_reason,
        reason_text=job.state_description,
        priority=job.priority.positive or 0,
        tres=job.tres_req_str,
        nodes=nodes,
        submitted_at=decode.moment(job.submit_time),
        started_at=decode.moment(job.start_time),
        ends_at=decode.moment(job.end_time),
        identity=_identity(job),
    )


def _identity(job: _Job) -> Identity | None:
    if decode.EXTERNAL_JOB not in job.flags:
        return None
    try:
        return identities.decode(job.admin_comment)
    except identities.UnreadableIdentityError:
        return None
