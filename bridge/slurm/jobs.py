"""Placeholders through slurmrestd: submit, read, cancel, mark.

A `Sluid` names a job forever; a `JobId` only until slurmctld crashes and assigns it to another job.
Every request has the id; pass the sluid as soon as it is known, and it is compared with that of the job
that has the id, read just before (`records`).
"""

import enum
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from bridge.domain.model import identities
from bridge.domain.model.batch import BatchJob
from bridge.domain.model.identities import Identity
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.model.placeholder import Changes, PlaceholderSpec
from bridge.slurm import decode, encode
from bridge.slurm.batch_jobs import decoding
from bridge.slurm.decode import ForeignJob
from bridge.slurm.updating import update
from slurmclient.errors import Declined, TargetNotFound
from slurmruntime.slurm import records, submission, wire
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import ALREADY_DONE, INVALID_JOB_ID
from slurmruntime.slurm.records import JobRecord
from slurmruntime.values.ids import JobId, Sluid, SlurmNode, WorkloadKey


class Ending(enum.Enum):
    """Result of ending a job."""

    ENDED = "ended"
    """Ended by this call."""
    ALREADY_ENDED = "already ended"
    NO_SUCH_JOB = "no such job"
    """It never existed, ended and was purged, or was lost in a crash; Slurm does not know which."""


ENDINGS: Final = {
    0: Ending.ENDED,
    ALREADY_DONE: Ending.ALREADY_ENDED,
    INVALID_JOB_ID: Ending.NO_SUCH_JOB,
}
"""By Slurm's error number; any other is a refusal."""


async def submit(client: SlurmClient, spec: PlaceholderSpec) -> JobId:
    """Submit a placeholder.

    Raises:
        LostReply: it may have been accepted; look it up by its identity before submitting again.
        Declined: it was rejected, with Slurm's message for the user.
        SlurmError: it was not accepted for another reason.
    """
    return await submission.send(client, encode.submission(spec))


async def job(
    client: SlurmClient, id_: JobId, *, sluid: Sluid | None = None, in_detail: bool = False
) -> SlurmJob | ForeignJob:
    """Return one job; in detail: with its devices, which makes the response up to 300 kB larger.

    Raises:
        TargetNotFound: it does not exist (any more), or its id belongs to a job with another sluid.
        SlurmError: it could not be read.
    """
    read = await records.read(client, id_, sluid=sluid, detail=in_detail)
    if decoding.is_marked(own := records.of(id_, read).value):
        return decoding.foreign(own)
    return await _placeholder(client, id_, read, in_detail=in_detail)


async def marked_job(
    client: SlurmClient,
    id_: JobId,
    *,
    sluid: Sluid | None = None,
    in_detail: bool = False,
    alone: Sluid | None = None,
) -> SlurmJob | BatchJob | ForeignJob:
    """Return one job, a placeholder or a batch job.

    Only for readers of both kinds: to all others the other kind is a foreign job.
    It raises what `job` does; `alone`: as in `records.read`.
    """
    read = await records.read(client, id_, sluid=sluid, detail=in_detail, alone=alone)
    own = records.of(id_, read)
    if decoding.is_marked(own.value):
        return decoding.job(id_, [record.raw for record in read])
    placeholder = await _placeholder(client, id_, read, in_detail=in_detail)
    if isinstance(placeholder, ForeignJob):
        (raw, *_) = (record.raw for record in read if record.decoded is own)
        return replace(placeholder, array_id=decoding.array_of(raw))
    return placeholder


async def _placeholder(
    client: SlurmClient, id_: JobId, read: Sequence[JobRecord], *, in_detail: bool = False
) -> SlurmJob | ForeignJob:
    placeholder = decode.job(*records.components(id_, read))
    if (
        in_detail
        or isinstance(placeholder, ForeignJob)
        or placeholder.phase is not JobPhase.RUNNING
    ):
        return placeholder
    if all(part.shares for part in placeholder.components):
        return placeholder
    detailed = await records.read(client, id_, sluid=placeholder.sluid, detail=True)
    return decode.job(*records.components(id_, detailed))


async def verified(
    client: SlurmClient, id_: JobId, workload: WorkloadKey | None, *, sluid: Sluid | None = None
) -> SlurmJob | None:
    """Read a placeholder; return None if it is gone, or if its id belongs to another job by now.

    After a hard crash slurmctld may give a job id to another job.

    Args:
        workload: the key its identity must have; None for any.
        sluid: the sluid it must have; None for any.

    Raises:
        SlurmError: it could not be read.
    """
    try:
        placeholder = await job(client, id_, sluid=sluid)
    except TargetNotFound:
        return None
    if not isinstance(placeholder, SlurmJob) or workload not in (None, placeholder.identity.key):
        return None
    return placeholder


async def cancel(client: SlurmClient, id_: JobId, *, sluid: Sluid | None = None) -> Ending:
    """Cancel a job: it is CANCELLED at once and its nodes are free.

    With its sluid, it is read first, and another job that has its id by now is left alone.
    No signal is ever specified: one that cannot be delivered makes the node unusable.

    Raises:
        LostReply: it may have been cancelled; a retry is harmless.
        SlurmError: it was not cancelled.
    """
    if sluid is not None:
        try:
            await records.verify(client, id_, sluid)
        except TargetNotFound:
            return Ending.NO_SUCH_JOB
    answer = await client.call(
        "job.cancel",
        "slurm_delete_job",
        {"job_id": id_},
        answer=wire.KillAnswer,
        is_repeatable=True,
    )
    for error in (status.error for status in answer.status or ()):
        ending = ENDINGS.get(error.code)
        if ending is None:
            raise Declined("job.cancel", f"job {id_}: {error.message}", error_number=error.code)
        if ending is not Ending.ENDED:
            return ending
    return Ending.ENDED


async def cancel_named(
    client: SlurmClient, job_id: JobId, sluid: Sluid | None, workload: WorkloadKey
) -> None:
    """Cancel a placeholder if its id is still that job's; before Slurm 25.11, still this workload's.

    Raises:
        SlurmError: it may not have been cancelled; repeating is harmless.
    """
    if sluid is not None or await verified(client, job_id, workload) is not None:
        await cancel(client, job_id, sluid=sluid)


async def cancel_for(
    client: SlurmClient, placeholder: SlurmJob, mark: Callable[[Identity], Identity]
) -> None:
    """Record in a placeholder's identity why it is cancelled, then cancel it.

    Raises:
        TargetNotFound: the id is not (any more) this workload's placeholder.
        SlurmError: it may have been marked, but was not cancelled for certain; repeating is harmless.
    """
    known, sluid = placeholder.identity, placeholder.sluid
    await amend_identity(client, placeholder.id, known, mark, sluid=sluid)
    await cancel(client, placeholder.id, sluid=sluid)


async def amend_identity(
    client: SlurmClient,
    job_id: JobId,
    known: Identity,
    amend: Callable[[Identity], Identity],
    *,
    sluid: Sluid | None = None,
) -> None:
    """Amend a placeholder's current identity; write nothing if it does not change.

    No other field is sent, because an update by root lifts the user's limit on a size. Slurm
    accepts only a job id here, so the job is read first: it must be this workload's placeholder.

    Raises:
        TargetNotFound: the id is not (any more) this workload's placeholder.
        Declined: it has ended (2084), or names a deleted node that cannot be stood in for (2018).
        SlurmError: it was not written.
    """
    held = await _held(client, job_id, known, sluid, operation="job.set_identity")
    identity = amend(held.identity)
    if identity == held.identity:
        return
    body = {"admin_comment": identities.encode(identity)}
    await update(client, "job.set_identity", job_id, body, cluster=identity.cluster)


async def set_time_limit(
    client: SlurmClient, placeholder: SlurmJob, *, minutes: int, true_min: int, expected_min: int
) -> bool:
    """Change a placeholder's time limit as root, and record its true limit in the same request.

    Return whether it was changed: if the limit is no longer `expected_min`, an administrator has
    changed it, and that takes precedence.

    Raises:
        TargetNotFound: the id is not (any more) this workload's placeholder.
        Declined: it has ended (2084), or names a deleted node that cannot be stood in for (2018).
        SlurmError: it was not changed.
    """
    operation = "job.set_time_limit"
    held = await _held(
        client, placeholder.id, placeholder.identity, placeholder.sluid, operation=operation
    )
    if held.time_limit_min != expected_min:
        return False
    recorded = (None, None) if minutes == true_min else (true_min, minutes)
    identity = replace(held.identity, limit_min=recorded[0], extended_min=recorded[1])
    body = {
        "admin_comment": identities.encode(identity),
        "time_limit": {"set": True, "infinite": False, "number": minutes},
    }
    for id_ in reversed(held.ids):  # leader last: its record implies all others are done
        await update(client, operation, id_, body, cluster=identity.cluster)
    return True


async def set_node_lists(
    client: SlurmClient,
    job_id: JobId,
    *,
    sluid: Sluid | None,
    required: Sequence[SlurmNode],
    excluded: Sequence[SlurmNode],
) -> None:
    """Replace the required and excluded nodes of a pending job; this lifts no limit.

    Raises:
        TargetNotFound: the job is gone, or its id belongs to another job.
        Declined: it is no longer pending (2073), or a node is unknown (2018).
        SlurmError: it was not written.
    """
    held = await verified(client, job_id, None, sluid=sluid)
    if held is None:
        raise TargetNotFound(
            "job.set_node_lists", f"job {job_id} is gone, or is another job by now"
        )
    # An empty list would change nothing; the empty name clears the list.
    body: dict[str, Sequence[str]] = {
        "required_nodes": required or [""],
        "excluded_nodes": encode.compressed(excluded) or [""],
    }
    await update(client, "job.set_node_lists", job_id, body, cluster=held.identity.cluster)


async def update_as_user(
    client: SlurmClient, placeholder: SlurmJob, changes: Changes, *, component: JobId | None = None
) -> None:
    """Change the request of a pending placeholder, impersonating the job's user.

    Each component of a heterogeneous job is changed by its own id.

    As root, the change would ignore the user's limits: root's change of a size, the time or the QOS
    permanently exempts the job from that limit. As the user, it is limited like a submission.

    Raises:
        TargetNotFound: the id is not (any more) this workload's placeholder.
        Declined: it was rejected, with Slurm's message for the user: not their QOS or account; or
            the job runs already or has ended.
        SlurmError: it was not changed.
    """
    operation = "job.update_as_user"
    whose = placeholder.identity
    held = await _held(client, placeholder.id, whose, placeholder.sluid, operation=operation)
    if held.identity.frozen is None:
        raise Declined(operation, f"job {held.id} does not record its user: it cannot be changed")
    await update(
        client,
        operation,
        component or held.id,
        encode.changes(changes),
        cluster=whose.cluster,
        user=held.identity.frozen.user,
    )


async def _held(
    client: SlurmClient, job_id: JobId, identity: Identity, sluid: Sluid | None, *, operation: str
) -> SlurmJob:
    """Return the workload's current placeholder, or raise `TargetNotFound`.

    An update accepts only a job id, which may belong to another job by now.
    """
    held = await verified(client, job_id, identity.key, sluid=sluid)
    if held is not None and held.identity.cluster == identity.cluster:
        return held
    raise TargetNotFound(
        operation,
        f"job {job_id} is not the placeholder of"
        f" {identity.kind} {identity.namespace}/{identity.name}",
    )
