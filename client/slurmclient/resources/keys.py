"""Keys."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from slurmclient.wire.values import Number

KEY: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,199}")


_MARK: Final = re.compile(r"(?:^| )slurmclient-key(?P<open>\??)=(?P<key>\S+)$")


class Keyed(Struct, frozen=True):
    """What is looked at to find a key."""

    job_id: int
    array_job_id: Number = None
    comment: str = ""
    job_state: frozenset[str] = frozenset()
    user_id: int = 0
    user_name: str = ""

    def is_of(self, owner: str) -> bool:
        """Check whose it is, by name or uid; "": anybody's. What others write into their comments does not count."""
        return owner in {"", self.user_name, str(self.user_id)}

    @property
    def id(self) -> int:
        """What the submit returned: all tasks of an array have one."""
        return int(self.array_job_id or self.job_id)

    @property
    def mark(self) -> tuple[str, bool] | None:
        """The key, and whether the job was confirmed; None: it has none."""
        found = _MARK.search(self.comment)
        return (found["key"], not found["open"]) if found else None


class Choice(Struct, frozen=True):
    """What is to be done about the jobs with a key."""

    job: Keyed | None
    """The one that counts; None: there is none."""
    confirm: bool = False
    cancel: tuple[int, ...] = ()


def choose(jobs: Sequence[Keyed], key: str) -> Choice:
    """Choose the one job of a key: whoever sees the same jobs chooses the same."""
    confirmed = sorted((one for one in jobs if one.mark == (key, True)), key=_by_id)
    still_open = sorted(
        (one for one in jobs if one.mark == (key, False) and "PENDING" in one.job_state), key=_by_id
    )
    if confirmed:
        return Choice(job=confirmed[0], cancel=tuple(one.id for one in still_open))
    if not still_open:
        return Choice(job=None)
    return Choice(job=still_open[0], confirm=True, cancel=tuple(one.id for one in still_open[1:]))


def _by_id(job: Keyed) -> int:
    return job.id


def marked(comment: str, key: str, step: Literal["open", "confirmed"]) -> str:
    """Put a key behind a comment."""
    mark = f"slurmclient-key{'?' if step == 'open' else ''}={key}"
    return f"{comment} {mark}" if comment else mark
