"""A Slurm that answers wrongly now and then: slow, broken, huge, empty, or not at all, through the proxies before it."""

import asyncio
import contextlib
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests import faults
from tests.fault_bench import FaultBench
from tests.faults import Fault

_PAUSES_S = (4.0, 12.0)
_MOST_REQUESTS = 3
_HUGE_BYTES = 100_000_000
_DEEP = "[" * 2_000_000


def _without_jobs(answer: Any) -> Any:
    return {**answer, "jobs": []} if isinstance(answer, dict) and "jobs" in answer else answer


def _huge() -> str:
    job = json.dumps({"job_id": 1, "job_state": ["RUNNING"], "comment": "x" * 1000})
    return '{"jobs":[' + f"{job}," * (_HUGE_BYTES // len(job)) + f'{job}],"errors":[]}}'


def _answers() -> Mapping[str, Fault]:
    return {
        "slow answers": faults.slow(3),
        "lost replies": faults.LOST_REPLY,
        "answers cut off": replace(faults.TRUNCATED, cut_at=120),
        "500 for what was done": faults.answers(500, "{}", reaches_server=True),
        "502 with a page": faults.answers(502, "<html>", content_type="text/html"),
        "half a JSON document": faults.answers(200, '{"jobs": [{"job_id": 1, "jo'),
        "two million brackets": faults.answers(200, _DEEP),
        "lists of jobs that are empty": faults.lie(_without_jobs),
        "100 MB of jobs": faults.answers(200, _huge()),
    }


class WrongSlurm:
    """Injects faults between our services and slurmrestd, and slurmctld."""

    def __init__(self, bench: FaultBench, dice: random.Random) -> None:
        self.story: list[str] = []
        """What happened, in order."""
        self._bench = bench
        self._dice = dice
        self._answers = _answers()

    async def go_on(self, stop: asyncio.Event) -> None:
        """One fault after the other, until told to stop."""
        while not stop.is_set():
            service = self._dice.choice(self._bench.services)
            what, times = (
                self._dice.choice(tuple(self._answers)),
                self._dice.randint(1, _MOST_REQUESTS),
            )
            where = ("GET", "/jobs") if "jobs" in what else ("", "")
            self._bench.link(service, "slurmrestd").inject(self._answers[what], *where, times=times)
            slow = self._dice.choice((faults.slow(2), faults.LOST_REPLY))
            self._bench.link(service, "slurmctld").inject(slow)
            self.story.append(what)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), self._dice.uniform(*_PAUSES_S))
        self._bench.calm()
