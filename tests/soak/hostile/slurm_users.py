"""A Slurm user with an account: very many jobs, odd ones, ones that look like ours, and the cancelling of placeholders."""

import itertools
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence

from bridge.domain.model import identities
from sandbox import nss
from sandbox.client import Sandbox
from tests.fuzz.inputs import ODD
from tests.fuzz.long_answers import LONGEST_LIST
from tests.integration.slurm_users import run_as
from tests.soak.hostile.grounds import Grounds

USER = nss.PEOPLE[1].name
"""The first of them has an odd job of `tests.soak.poison`, which must stay."""
_NAME = "crowd"
_ARRAY = 1000
_ARRAYS = 3
_ODD_AT_A_TIME = 10
_LONG_AT_A_TIME = 8
_ALIKE_AT_A_TIME = 5
_CANCELLED_AT_A_TIME = 30


def attacks(grounds: Grounds) -> Mapping[str, Callable[[], None]]:
    """By what a person calls them."""
    user = _User(grounds)
    return {
        f"{_ARRAYS * _ARRAY} held jobs at once": user.submit_crowd,
        "jobs with odd names, comments and wckeys": user.submit_odd,
        "jobs that exclude 60 kB of nodes": user.submit_long,
        "jobs that look like placeholders": user.submit_alike,
        "placeholders renamed and cancelled by their user": user.cancel_own,
    }


class _User:
    def __init__(self, grounds: Grounds) -> None:
        self._sandbox = grounds.sandbox
        self._namespace = grounds.namespace
        self._dice = grounds.dice
        self._numbers = itertools.count()

    def submit_crowd(self) -> None:
        """They stay until the next crowd comes."""
        cancel_all(self._sandbox)
        for _ in range(_ARRAYS):
            self._submit(f"--array=0-{_ARRAY - 1}")

    def submit_odd(self) -> None:
        texts: list[str | bytes] = [
            *self._dice.sample(ODD, _ODD_AT_A_TIME - 2),
            b"a\xff",
            "[/x]\x1b[2J",
        ]
        for text in texts:
            odd = os.fsencode(text) if isinstance(text, str) else text
            odd = odd.replace(b"\0", b"?")  # no argument holds one
            for option in (b"--job-name=", b"--comment=", b"--wckey="):
                self._submit(option + odd)

    def submit_long(self) -> None:
        for _ in range(_LONG_AT_A_TIME):
            self._submit(f"--exclude={LONGEST_LIST}")

    def submit_alike(self) -> None:
        """With a copy of a record in every field that a user may write; they run, as far as Slurm knows."""
        for _, record in self._placeholders()[:_ALIKE_AT_A_TIME]:
            alike = (f"--comment={record}", f"--job-name={record[:200]}", "--external", "-t", "1")
            self._submit(*alike, is_held=False)

    def cancel_own(self) -> None:
        """As the user whose jobs they are."""
        ids = [id_ for id_, _ in self._placeholders()][:_CANCELLED_AT_A_TIME]
        owner = nss.JOB_USER.name
        for id_ in ids[:3]:
            self._try(owner, "scontrol", "update", f"jobid={id_}", b"name=a\xff")
        if ids:
            self._try(owner, "scancel", *ids)
        time.sleep(1)

    def _placeholders(self) -> Sequence[tuple[str, str]]:
        """Ids and records of mallory's."""
        printed = self._sandbox.run("squeue", "--noheader", "-O", "JobID:|,admin_comment:2000")
        rows = [line.strip().partition("|")[::2] for line in printed.splitlines()]
        return [(id_, record) for id_, record in rows if self._is_hers(record)]

    def _is_hers(self, record: str) -> bool:
        identity = identities.decode(record)
        return identity is not None and identity.namespace == self._namespace

    def _submit(self, *options: str | bytes, is_held: bool = True) -> None:
        held = ("--hold",) if is_held else ()
        command = ("sbatch", "--parsable", "--mem=10", "-A", nss.JOB_USER.name, "--chdir=/")
        name = f"--job-name={_NAME}-{next(self._numbers)}"
        self._try(USER, *command, *held, name, *options, "--wrap=true")

    def _try(self, user: str, *command: str | bytes) -> None:
        """Slurm may well refuse."""
        try:
            run_as(self._sandbox, user, *command)
        except (AssertionError, subprocess.TimeoutExpired):
            return


def cancel_all(sandbox: Sandbox) -> None:
    """Cancel what is left of his jobs."""
    sandbox.run("scancel", "--quiet", f"--user={USER}")
