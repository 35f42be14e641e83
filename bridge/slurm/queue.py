"""List all of Slurm's jobs for the command line; at about 2 kB a job, services never call this."""

from collections.abc import Callable

import msgspec
from msgspec import Struct

from bridge.domain import hostlist
from bridge.domain.diagnosis.queue import QueuedJob
from bridge.domain.ids import JobId, SlurmNode
from bridge.domain.model import identities
from bridge.domain.model.identities import Identity
from bridge.slurm import decode, lenient, wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.errors import Malformed


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


class _Jobs(wire.Answer, frozen=True):
    """GET /jobs/; each of `jobs` is a `_Job`, decoded one by one (`bridge.slurm.lenient`)."""

    jobs: list[msgspec.Raw] | None = None


async def listing(
    client: SlurmClient, *, on_unreadable: Callable[[str], None]
) -> tuple[QueuedJob, ...]:
    """Return every job Slurm still knows, including those that ended in the last minutes.

    Args:
        client: Slurm.
        on_unreadable: Called with a message for each job that is omitted because it cannot be
            decoded.

    Raises:
        SlurmError: it could not be read.
    """
    answer = await client.call("job.list", "GET", "/jobs/", answer=_Jobs)
    if answer.jobs is None:
        raise Malformed("job.list", "the response has no list of jobs")
    queued: list[QueuedJob] = []
    for raw in answer.jobs:
        try:
            queued.append(_queued(lenient.one(raw, _Job).value))
        except (Malformed, *lenient.UNDECODABLE) as error:
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
    """Return a placeholder's identity; None for other jobs, and if it cannot be decoded."""
    if decode.EXTERNAL_JOB not in job.flags:
        return None
    try:
        return identities.decode(job.admin_comment)
    except identities.UnreadableIdentityError:
        return None
