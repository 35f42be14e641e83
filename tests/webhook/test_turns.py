"""SlurmJobs of several namespaces wait for the one thread that reviews them."""

import asyncio
import time

import pytest

from bridge.domain.admission.review import Verdict
from bridge.domain.request.rules import Requester
from webhook.apart import LONGEST_WAIT_S, MOST_BYTES, BusyError, ReviewThread
from webhook.reviewing import ReviewResult
from webhook.wire import Review

SLOW_S = 0.05
"""As the dearest script may take on a busy machine."""


def review(namespace: str, document: bytes = b"{}") -> Review:
    return Review(
        uid="1",
        namespace=namespace,
        requester=Requester(user=namespace),
        created="SlurmJob.slurm-bridge.dev",
        updated="",
        document=document,
        before=b"",
    )


def reviewed(of: Review) -> ReviewResult:
    time.sleep(SLOW_S)  # on the thread
    return ReviewResult(name=of.namespace, verdict=Verdict())


async def answer(apart: ReviewThread, of: Review) -> str:
    """Whose object was reviewed; "" if it was refused for the crowd."""
    try:
        return (await apart.run(reviewed, of)).name
    except BusyError:
        return ""


@pytest.mark.attack(
    "create so many SlurmJobs at a time that other tenants' wait for their review until they are refused",
    "namespaces have their turn one after the other",
)
async def test_a_crowd_of_one_namespace_is_waited_for_once() -> None:
    apart = ReviewThread()
    async with asyncio.TaskGroup() as group:
        crowd = [group.create_task(answer(apart, review("mallory"))) for _ in range(100)]
        await asyncio.sleep(0)

        assert "lab" == await answer(apart, review("lab"))
        assert sum(one.done() for one in crowd) <= 2

    assert [one.result() for one in crowd].count("") >= 100 - LONGEST_WAIT_S / SLOW_S - 2
    assert "lab" == await answer(apart, review("lab")), "a turn was lost"


@pytest.mark.attack(
    "create such large SlurmJobs that no more bytes may wait for their review, and other tenants' are refused",
    "one namespace has a quarter of the bytes at most",
)
async def test_one_namespace_does_not_fill_what_may_wait() -> None:
    apart = ReviewThread()
    large = b" " * (3 * 2**20)
    async with asyncio.TaskGroup() as group:
        crowd = [
            group.create_task(answer(apart, review("mallory", large)))
            for _ in range(2 * MOST_BYTES // len(large))
        ]
        await asyncio.sleep(0)

        assert "lab" == await answer(apart, review("lab", large))

    assert ["mallory"] == [one.result() for one in crowd if one.result()]


async def test_a_turn_is_passed_on_by_those_that_give_up() -> None:
    apart = ReviewThread()
    async with asyncio.TaskGroup() as group:
        waiting = [group.create_task(answer(apart, review(f"n{n}"))) for n in range(10)]
        await asyncio.sleep(SLOW_S / 2)
        for one in waiting[1:9]:
            one.cancel()

    assert "n9" == waiting[9].result()
    assert "lab" == await answer(apart, review("lab"))
