"""Placeholders through slurmrestd: submit, read, cancel, mark.

A `Sluid` names a job for ever, a `JobId` only until slurmctld crashes and gives it to another job: where a call takes
either, pass the sluid as soon as it is known.
"""

import enum
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from bridge.domain.ids import JobId, Sluid, SlurmNode, WorkloadKey
from bridge.domain.model import placeholder
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import Changes, Identity, PlaceholderSpec
from bridge.slurm import decode, encode, lenient, wire
from bridge.slurm.client import SlurmClient
from bridge.slurm.decode import Stranger
from bridge.slurm.errors import (
    ALREADY_DONE,
    INVALID_JOB_ID,
    LostReply,
    Malformed,
    NotFound,
    Rejected,
)
from bridge.slurm.lenient import Lenient

BATCH: Final = 1000
"""Ids per /jobs/state/ request: its cost grows faster than their number, and a URL of 119 kB is refused."""


_states = msgspec.json.Decoder(list[wire.JobState] | None)


@dataclass(frozen=True, slots=True)
class JobListing:
    """Base states and flags of all jobs, as Slurm listed them."""

    body: bytes
    states: Mapping[JobId, frozenset[str]]


class Ending(enum.Enum):
    """What came of ending a job."""

    ENDED = "ended"
    """By this call."""
    ALREADY_ENDED = "already ended"
    NO_SUCH_JOB = "no such job"
    """Never was, or ended and was purged, or lost in a crash: Slurm cannot tell."""


async def submit(client: SlurmClient, spec: PlaceholderSpec) -> JobId:
    """Submit a placeholder.

    Raises:
        LostReply: it may have been accepted: look for it by its identity before submitting again.
        Rejected: Slurm's words for the user.
        SlurmError: it was not accepted, for another reason.
    """
    operation = "job.submit"
    try:
        answer = await client.call(
            operation, "POST", "/job/submit", body=encode.submission(spec), answer=wire.Answer
        )
    except Rejected as refusal:
        # slurmrestd may dislike something (an unknown flag: HTTP 500) and submit the rest all the same.
        if refusal.job_id:
            return JobId(refusal.job_id)
        raise
    except Malformed as error:
        raise LostReply(operation, error.words, status=error.status) from error
    if not answer.job_id:
        # Slurm's refusals may come as HTTP 200 with nothing but warnings, for a field of the wrong type for one.
        raise Rejected(operation, _remarks(answer) or "answered without a job id or a reason")
    return JobId(answer.job_id)


async def job(client: SlurmClient, ref: JobId | Sluid) -> SlurmJob | Stranger:
    """Read one job.

    Raises:
        NotFound: there is none (any more).
        SlurmError: it could not be read.
    """
    # SHOW_ALL leaves out the per-core detail, which may be 300 kB: only where tasks share nodes it has to be seen.
    found = decode.job(*await _job(client, ref, [("flags", "ALL")]))
    is_shared = (
        isinstance(found, SlurmJob)
        and found.phase is JobPhase.RUNNING
        and not all(part.shares for part in found.components)
    )
    return decode.job(*await _job(client, ref, [])) if is_shared else found


async def verified(
    client: SlurmClient,
    ref: JobId | Sluid,
    workload: WorkloadKey | None,
    *,
    sluid: Sluid | None = None,
) -> SlurmJob | None:
    """Read a placeholder, and make sure that it is still the one that was meant.

    After a hard crash slurmctld may give a job id to another job. Return None if the job is gone,
    or if the id belongs to another one by now.

    Args:
        client: slurmrestd.
        ref: the job; its sluid if it is known.
        workload: the uid its identity must have; None for any.
        sluid: the sluid it must have, for calls that take only a job id; None for any.

    Raises:
        SlurmError: it could not be read.
    """
    try:
        found = await job(client, ref)
    except NotFound:
        return None
    if not isinstance(found, SlurmJob) or workload not in (None, found.identity.uid):
        return None
    return found if sluid in (None, found.sluid) else None


async def _job(
    client: SlurmClient, ref: JobId | Sluid, params: Sequence[tuple[str, str]]
) -> list[Lenient[wire.Job]]:
    """Read the job, and its further components in order where it leads some."""
    answer = await client.call("job.get", "GET", f"/job/{ref}", params=params, answer=wire.Jobs)
    try:
        found = [lenient.one(raw, wire.Job) for raw in answer.jobs or ()]
    except lenient.UNDECODABLE as error:
        raise Malformed("job.get", f"job {ref}: {error}") from error
    for each in found:  # a het leader's answer has its components too
        wired = each.value
        if ref in (wired.job_id, wired.step_id.sluid):
            others = [other for other in found if other.value.het_job_id.positive == wired.job_id]
            others.sort(key=lambda component: component.value.het_job_offset.number)
            return [each, *(other for other in others if other is not each)]
    # Not "not found", which Slurm says with 404: on that, pods are given up.
    raise Malformed("job.get", f"the answer does not have job {ref}")


async def listing(client: SlurmClient, *, before: JobListing | None = None) -> JobListing:
    """Read base states and flags of all jobs; where nothing has changed, `before` itself comes back.

    10 000 jobs are 380 kB: 0.1 ms to compare, 15 ms to read. Tasks of arrays are left out.
    """
    body = await _listed(client, ())
    return before if before and before.body == body else JobListing(body, _read_states(body))


async def states(client: SlurmClient, ids: Collection[JobId]) -> Mapping[JobId, frozenset[str]]:
    """Read base states and flags of some jobs; whoever is unknown is simply missing.

    Never takes a sluid: slurmrestd would answer with all jobs.
    """
    found: dict[JobId, frozenset[str]] = {}
    wanted = sorted(ids)
    for start in range(0, len(wanted), BATCH):
        batch = wanted[start : start + BATCH]
        found |= _read_states(await _listed(client, [("job_id", str(id_)) for id_ in batch]))
    return found


async def cancel(client: SlurmClient, ref: JobId | Sluid) -> Ending:
    """Cancel a job: CANCELLED at once, its nodes free. No signal is ever named: one that cannot be delivered ruins the node.

    Raises:
        LostReply: it may have been cancelled; to ask again does no harm.
        SlurmError: it was not cancelled.
    """
    answer = await client.call("job.cancel", "DELETE", f"/job/{ref}", answer=wire.Killed)
    for status in answer.status or ():
        match status.error.code:
            case 0:
                continue
            case code if code == ALREADY_DONE:
                return Ending.ALREADY_ENDED
            case code if code == INVALID_JOB_ID:
                return Ending.NO_SUCH_JOB
            case code:
                raise Rejected(
                    "job.cancel", f"job {ref}: {status.error.message}", error_number=code
                )
    return Ending.ENDED


async def cancel_for(
    client: SlurmClient, placeholder_: SlurmJob, mark: Callable[[Identity], Identity]
) -> None:
    """Record in a placeholder's identity why it is cancelled, then cancel it.

    Raises:
        NotFound: the id is not (any more) this workload's placeholder.
        SlurmError: it may have been marked, but was not cancelled for certain; repeating is harmless.
    """
    known, sluid = placeholder_.identity, placeholder_.sluid
    await amend_identity(client, placeholder_.id, known, mark, sluid=sluid)
    await cancel(client, sluid or placeholder_.id)


async def set_identity(
    client: SlurmClient, job_id: JobId, identity: Identity, *, sluid: Sluid | None = None
) -> None:
    """Write a placeholder's identity anew; otherwise as `amend_identity`."""
    await amend_identity(client, job_id, identity, lambda _: identity, sluid=sluid)


async def amend_identity(
    client: SlurmClient,
    job_id: JobId,
    known: Identity,
    amend: Callable[[Identity], Identity],
    *,
    sluid: Sluid | None = None,
) -> None:
    """Change a placeholder's identity as it is now, and nothing else: root's update of a size would lift the limit on it.

    Nothing is written where nothing changes.

    Slurm takes only a job id here, so the job is read first: it must be this workload's placeholder.

    Raises:
        NotFound: the id is not (any more) this workload's placeholder.
        Rejected: it has ended (2084), or an excluded node of it was deleted (2018).
        SlurmError: it was not written.
    """
    held = await _held(client, job_id, known, sluid, operation="job.set_identity")
    identity = amend(held.identity)
    if identity == held.identity:
        return
    await client.call(
        "job.set_identity",
        "POST",
        f"/job/{job_id}",
        body={"admin_comment": placeholder.encode(identity)},
        answer=wire.Answer,
    )


async def set_time_limit(
    client: SlurmClient, placeholder_: SlurmJob, *, minutes: int, true_min: int, expected_min: int
) -> bool:
    """Change a placeholder's time limit as root, and record in the same request what it is without us.

    Returns whether it was done: an administrator may have changed the limit since it was `expected_min`, and that stands.

    Raises:
        NotFound: the id is not (any more) this workload's placeholder.
        Rejected: it has ended (2084), or an excluded node of it was deleted (2018).
        SlurmError: it was not changed.
    """
    operation = "job.set_time_limit"
    held = await _held(
        client,
        placeholder_.id,
        placeholder_.identity,
        placeholder_.sluid,
        operation=operation,
    )
    if held.time_limit_min != expected_min:
        return False
    recorded = (None, None) if minutes == true_min else (true_min, minutes)
    identity = replace(held.identity, limit_min=recorded[0], extended_min=recorded[1])
    body = {
        "admin_comment": placeholder.encode(identity),
        "time_limit": {"set": True, "infinite": False, "number": minutes},
    }
    for id_ in reversed(held.ids):  # what the first one says was done has been done to all
        await client.call(operation, "POST", f"/job/{id_}", body=body, answer=wire.Answer)
    return True


async def set_node_lists(
    client: SlurmClient,
    job_id: JobId,
    *,
    sluid: Sluid | None,
    required: Sequence[SlurmNode],
    excluded: Sequence[SlurmNode],
) -> None:
    """Replace the nodes that a waiting job must have some of, and those it must not have; no limit is lifted by that.

    Raises:
        NotFound: that job is gone, or the id is another one's by now.
        Rejected: it does not wait any more (2073), or a node is unknown (2018).
        SlurmError: it was not written.
    """
    if await verified(client, job_id, None, sluid=sluid) is None:
        raise NotFound("job.set_node_lists", f"job {job_id} is gone, or another one by now")
    # An empty list would change nothing; the empty name is none.
    body: dict[str, Sequence[str]] = {
        "required_nodes": required or [""],
        "excluded_nodes": excluded or [""],
    }
    await client.call("job.set_node_lists", "POST", f"/job/{job_id}", body=body, answer=wire.Answer)


async def update_as_user(
    client: SlurmClient,
    placeholder_: SlurmJob,
    changes: Changes,
    *,
    component: JobId | None = None,
) -> None:
    """Change what a waiting placeholder asks for, as the user whose job it is.

    Of a heterogeneous one each component by its own id.

    As root it would be done whatever their limits are: root's change of a size, of time or of the QOS takes the job out of
    that limit for good. As the user it is limited like a submission.

    Raises:
        NotFound: the id is not (any more) this workload's placeholder.
        Rejected: Slurm's words for the user: not their QOS, not their account; or it runs already, or has ended.
        SlurmError: it was not changed.
    """
    operation = "job.update_as_user"
    whose = placeholder_.identity
    held = await _held(client, placeholder_.id, whose, placeholder_.sluid, operation=operation)
    if held.identity.frozen is None:
        raise Rejected(operation, f"job {held.id} does not say whose it is: it cannot be changed")
    await client.call(
        operation,
        "POST",
        f"/job/{component or held.id}",
        body=encode.changes(changes),
        answer=wire.Answer,
        user=held.identity.frozen.user,
    )


async def _held(
    client: SlurmClient, job_id: JobId, identity: Identity, sluid: Sluid | None, *, operation: str
) -> SlurmJob:
    """The workload's placeholder as Slurm has it now: an update takes only a job id, which may be another's by now."""
    held = await verified(client, job_id, identity.uid, sluid=sluid)
    if held is not None and held.identity.cluster == identity.cluster:
        return held
    raise NotFound(
        operation,
        f"job {job_id} is not the placeholder of {identity.kind} {identity.namespace}/{identity.name}",
    )


async def _listed(client: SlurmClient, params: Sequence[tuple[str, str]]) -> bytes:
    answer = await client.call(
        "job.states", "GET", "/jobs/state/", params=params, answer=wire.States
    )
    return bytes(answer.jobs)


def _read_states(body: bytes) -> dict[JobId, frozenset[str]]:
    try:
        listed = _states.decode(body)
    except lenient.UNDECODABLE as error:
        raise Malformed("job.states", str(error)) from error
    if listed is None:
        raise Malformed("job.states", "the answer has no list of jobs")
    states: dict[JobId, frozenset[str]] = {}
    for each in listed:
        if (found := decode.job_id(each.job_id)) is not None:
            id_, offset = found
            state = decode.component_states(offset, each.state)
            states[id_] = states[id_] | state if id_ in states else state
    return states


def _remarks(answer: wire.Answer) -> str:
    return "; ".join(remark.description for remark in answer.warnings or ())
