"""Submitting a job, and submitting it at most once.

A submit is not idempotent, and its answer may get lost. slurmctld may even accept it minutes later,
when it recovers. Therefore a job with a key is submitted in two steps, and its comment records which
step it has reached:

1. Submit it *held*, with `slurmclient-key?=KEY` in its comment. A held job cannot run.
2. List all jobs with the key and choose one: the confirmed one, or else the one with the lowest id.
   A single update writes `slurmclient-key=KEY` into its comment and releases it. Cancel the held
   jobs that were not chosen.

Programs that use the same key again, or concurrently, find the same jobs and choose the same one,
because slurmctld assigns ids in the order of submission: a concurrent job is either in the list or
has a higher id. A submit that arrives late stays held until the next use of the key cancels it. A key
lasts until slurmctld purges the job, MinJobAge seconds after its end. Each user has keys of their own.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from slurmclient.calls import answers
from slurmclient.calls.speaker import Speaker
from slurmclient.errors import Conflict, LostReply, NotFound, Rejected, Remark
from slurmclient.resources.keys import JobKeyView, check_key, choose, marked

_ATTEMPTS: Final = 3


class SubmitResult(Struct, frozen=True):
    """A job that Slurm has accepted."""

    job_id: int
    is_new: bool = True
    """False if a job with this key existed already."""
    message: str = ""
    """The message of the cluster's job_submit plugin for the user."""
    warnings: tuple[Remark, ...] = ()


class _Reply(Struct, frozen=True):
    job_id: int | None = None
    job_submit_user_msg: str | None = None
    warnings: tuple[Remark, ...] | None = None


async def submit(speaker: Speaker, description: Mapping[str, object]) -> SubmitResult:
    """Submit a job without protection against duplicates.

    Raises:
        LostReply: If the job may have been submitted.
        SlurmError: As `slurmclient.errors` classifies it.
    """
    operation = "slurm_post_job_submit"
    answer, _ = await speaker.write(operation, body={"job": description})
    reply = answers.parse(operation, answer, _Reply)
    warnings = reply.warnings or ()
    if not reply.job_id:  # for a field of the wrong type slurmrestd only warns, and submits nothing
        words = (
            "; ".join(f"{warning.source}: {warning.description}" for warning in warnings)
            or "the answer has no job id"
        )
        raise Rejected(operation, words, warnings=warnings)
    return SubmitResult(
        job_id=reply.job_id, message=reply.job_submit_user_msg or "", warnings=warnings
    )


async def submit_once(
    speaker: Speaker, description: Mapping[str, object], key: str
) -> SubmitResult:
    """Submit a job unless there is one with this key; see the module.

    Raises:
        ValueError: If the key is invalid.
        SlurmError: As `slurmclient.errors` classifies it; try again with the same key.
    """
    check_key(key)
    comment = str(description.get("comment") or "")
    existing_id = await _settle(speaker, key, comment, description)
    if existing_id is not None:
        return SubmitResult(job_id=existing_id, is_new=False)
    submitted = await _submit_held(speaker, description, key, comment)
    for _ in range(_ATTEMPTS):
        settled = await _settle(speaker, key, comment, description)
        if settled is not None:
            is_ours = submitted is not None and settled == submitted.job_id
            return (
                submitted if submitted and is_ours else SubmitResult(job_id=settled, is_new=False)
            )
    raise LostReply(
        "slurm_post_job_submit",
        f"the answer to the submit of {key!r} got lost, and Slurm lists no such job yet; try again"
        " with the same key",
    )


async def _submit_held(
    speaker: Speaker, description: Mapping[str, object], key: str, comment: str
) -> SubmitResult | None:
    """Submit a held job; return None if the answer got lost."""
    held = {**description, "hold": True, "comment": marked(comment, key, "open")}
    try:
        return await submit(speaker, held)
    except LostReply:
        return None
    except Rejected as error:
        if error.job_id:  # refused for an unknown flag, but submitted
            await speaker.write("slurm_delete_job", {"job_id": error.job_id})
        raise


async def _settle(
    speaker: Speaker, key: str, comment: str, description: Mapping[str, object]
) -> int | None:
    """Reduce the jobs with the key to one; return its id, or None if there is none."""
    owner = str(description.get("user_id") or speaker.user or await speaker.caller.transport.user())
    listed = await speaker.read_all("slurm_get_jobs", "jobs", JobKeyView)
    choice = choose([job for job in listed if job.is_of(owner)], key)
    for job_id in choice.cancel:
        with contextlib.suppress(NotFound, Conflict):  # another program was faster
            await speaker.write("slurm_delete_job", {"job_id": job_id})
    if choice.job is None:
        return None
    if choice.confirm:
        body: dict[str, object] = {"comment": marked(comment, key, "confirmed")}
        if not description.get("hold"):
            body["hold"] = False
        await speaker.write("slurm_post_job", {"job_id": choice.job.id}, body=body)
    return choice.job.id
