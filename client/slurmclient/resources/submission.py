"""Submitting, and submitting at most once.

A submit is not idempotent, and its answer may get lost; slurmctld may even take it minutes later, when it wakes. So a job
with a key goes through two steps, and the key in its comment says which one it has reached:

1. It is submitted *on hold* with `slurmclient-key?=KEY` in its comment. Held, it cannot run.
2. All jobs with the key are looked up, and one of them is chosen: the one that has been confirmed, or else the one with the
   lowest id. One update puts `slurmclient-key=KEY` there and releases it. Held ones that were not chosen are cancelled.

Whoever asks again, or at the same time, finds the same jobs and chooses the same one, as slurmctld gives ids in the order
of submission: at the look, either the other's job is seen, or it gets a higher id. A submit that arrives late stays on hold,
and the next who asks for the key cancels it. The key lasts as long as slurmctld remembers the job: until MinJobAge seconds
after its end. Keys are each user's own.
"""

import contextlib
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from slurmclient.calls.speaker import Speaker
from slurmclient.errors import Conflict, LostReply, NotFound, Rejected, Remark
from slurmclient.resources.keys import KEY, Keyed, choose, marked
from slurmclient.wire import reading

_ATTEMPTS: Final = 3


class Submitted(Struct, frozen=True):
    """A job that Slurm has taken."""

    job_id: int
    is_new: bool = True
    """False: there was one with this key already."""
    message: str = ""
    """Of the cluster's job_submit plugin, for the user."""
    warnings: tuple[Remark, ...] = ()


class _Reply(Struct, frozen=True):
    job_id: int | None = None
    job_submit_user_msg: str | None = None
    warnings: tuple[Remark, ...] | None = None


async def submit(speaker: Speaker, description: Mapping[str, object]) -> Submitted:
    """Submit a job, once, whatever becomes of the answer.

    Raises:
        SlurmError: what `slurmclient.errors` tells apart.
    """
    operation = "slurm_post_job_submit"
    answer, _ = await speaker.write(operation, body={"job": description})
    said = reading.decode(answer, _Reply)
    warnings = said.warnings or ()
    if not said.job_id:  # a field of the wrong type is a warning only, and there is no job
        words = (
            "; ".join(f"{one.source}: {one.description}" for one in warnings)
            or "the answer has no job id"
        )
        raise Rejected(operation, words, warnings=warnings)
    return Submitted(job_id=said.job_id, message=said.job_submit_user_msg or "", warnings=warnings)


async def once(speaker: Speaker, description: Mapping[str, object], key: str) -> Submitted:
    """Submit a job unless there is one with this key; see the module.

    Raises:
        ValueError: this is no key.
        SlurmError: what `slurmclient.errors` tells apart; ask again with the same key.
    """
    if not KEY.fullmatch(key):
        raise ValueError(
            f"expected a key of up to 200 letters, digits and ._:/@+-, beginning with one of the former; got {key!r}"
        )
    comment = str(description.get("comment") or "")
    found = await _settle(speaker, key, comment, description)
    if found is not None:
        return Submitted(job_id=found, is_new=False)
    submitted = await _submit_held(speaker, description, key, comment)
    for _ in range(_ATTEMPTS):
        settled = await _settle(speaker, key, comment, description)
        if settled is not None:
            is_ours = submitted is not None and settled == submitted.job_id
            return submitted if submitted and is_ours else Submitted(job_id=settled, is_new=False)
    raise LostReply(
        "slurm_post_job_submit",
        f"the answer to the submit of {key!r} got lost, and Slurm shows no such job yet; ask again with the same key",
    )


async def _submit_held(
    speaker: Speaker, description: Mapping[str, object], key: str, comment: str
) -> Submitted | None:
    """Submit a job that cannot run; None: the answer got lost."""
    held = {**description, "hold": True, "comment": marked(comment, key, "open")}
    try:
        return await submit(speaker, held)
    except LostReply:
        return None
    except Rejected as error:
        if error.job_id:  # refused, and submitted all the same: a flag that Slurm does not know
            await speaker.write("slurm_delete_job", {"job_id": error.job_id})
        raise


async def _settle(
    speaker: Speaker, key: str, comment: str, description: Mapping[str, object]
) -> int | None:
    """Look at all jobs with the key and leave one; return its id, None if there is none."""
    owner = str(description.get("user_id") or speaker.user or await speaker.caller.transport.user())
    listed = await speaker.read("slurm_get_jobs", "jobs", Keyed)
    choice = choose([one for one in listed or () if one.is_of(owner)], key)
    for job_id in choice.cancel:
        with contextlib.suppress(NotFound, Conflict):  # another one was faster
            await speaker.write("slurm_delete_job", {"job_id": job_id})
    if choice.job is None:
        return None
    if choice.confirm:
        body = {"comment": marked(comment, key, "confirmed")}
        if not description.get("hold"):
            body["hold"] = False  # type: ignore[assignment]  # a body has values of any type
        await speaker.write("slurm_post_job", {"job_id": choice.job.id}, body=body)
    return choice.job.id
