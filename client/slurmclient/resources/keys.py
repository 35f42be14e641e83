"""The key in a job's comment, and the choice among several jobs with one key."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from slurmclient.wire.values import Number

_KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")
_MARK: Final = re.compile(r"(?:^| )slurmclient-key(?P<open>\??)=(?P<key>\S+)$")


class JobKeyView(Struct, frozen=True):
    """The fields of a job that tell whether it has a key."""

    job_id: int
    array_job_id: Number = None
    comment: str = ""
    job_state: frozenset[str] = frozenset()
    user_id: int = 0
    user_name: str = ""

    def is_of(self, owner: str) -> bool:
        """Check whether the job belongs to a user, so that others cannot claim the user's keys.

        `owner` is a name or uid; "" matches every user.
        """
        return owner in {"", self.user_name, str(self.user_id)}

    @property
    def id(self) -> int:
        """The id that the submit returned; the tasks of an array share it."""
        return int(self.array_job_id or self.job_id)

    @property
    def mark(self) -> tuple[str, bool] | None:
        """The key, and whether the job is confirmed; None if it has no key."""
        return mark_of(self.comment)


class Choice(Struct, frozen=True):
    """What to do about the jobs with a key."""

    job: JobKeyView | None
    """The job that counts; None if there is none."""
    confirm: bool = False
    """Whether it still has to be confirmed and released."""
    cancel: tuple[int, ...] = ()
    """The ids of the others, all of them held."""


def mark_of(comment: str) -> tuple[str, bool] | None:
    """Return the key in a job's comment, and whether the job is confirmed; None if it has no key."""
    match = _MARK.search(comment)
    return (match["key"], not match["open"]) if match else None


def check_key(key: str) -> None:
    """Raise ValueError if a key cannot be written into a comment and found again."""
    if not _KEY.fullmatch(key):
        raise ValueError(
            "expected a key of at most 200 letters, digits and ._:/@+-, starting with a letter or"
            f" digit; got {key!r}"
        )


def choose(jobs: Sequence[JobKeyView], key: str) -> Choice:
    """Choose the job of a key that counts, among all of the user's.

    A confirmed job does, or else the pending one with the lowest id. The result depends only on the
    jobs, so that all programs that see the same jobs choose the same one.
    """
    confirmed = sorted((job for job in jobs if job.mark == (key, True)), key=_by_id)
    still_open = sorted(
        (job for job in jobs if job.mark == (key, False) and "PENDING" in job.job_state), key=_by_id
    )
    if confirmed:
        return Choice(job=confirmed[0], cancel=tuple(job.id for job in still_open))
    if not still_open:
        return Choice(job=None)
    return Choice(job=still_open[0], confirm=True, cancel=tuple(job.id for job in still_open[1:]))


def marked(comment: str, key: str, step: Literal["open", "confirmed"]) -> str:
    """Return a comment with a key at its end."""
    mark = f"slurmclient-key{'?' if step == 'open' else ''}={key}"
    return f"{comment} {mark}" if comment else mark


def _by_id(job: JobKeyView) -> int:
    return job.id
