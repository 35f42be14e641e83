"""Review SlurmJobs on a thread of their own, so that pods never wait for them.

A script is read character by character, so the most expensive one takes some fifty times as long as a pod.
One thread reads one script at a time; the event loop, which reviews pods, gets the interpreter back within
the switch interval.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from webhook.reviewing import ReviewMethod, ReviewResult
from webhook.wire import Review

LONGEST_WAIT_S: Final = 2.0
"""The API server gives up after five seconds."""
MOST_BYTES: Final = 16 * 2**20
"""Size of all waiting objects together; one has at most 3 MiB."""

_SWITCH_S: Final = 0.0005
"""Switch interval of the interpreter: about as long as a pod's review takes."""


class BusyError(Exception):
    """Too many reviews are waiting already; the message is for the requester."""


class ReviewThread:
    """Runs slow reviews on one thread, with a bound on how long and how many may wait."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._bytes = 0
        """Size of the waiting objects and of the one under review."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reviews")
        sys.setswitchinterval(_SWITCH_S)

    async def run(self, method: ReviewMethod, review: Review) -> ReviewResult:
        """Review an object when its turn comes.

        Raises:
            BusyError: Too many reviews are waiting, or its turn did not come in time.
            MalformedObjectError: The object is not of its kind.
        """
        size = len(review.document)
        if self._bytes + size > MOST_BYTES:
            raise BusyError(
                f"too many SlurmJobs are waiting for review ({self._bytes} bytes, at most {MOST_BYTES}): create"
                " it again in a few seconds"
            )
        self._bytes += size
        try:
            return await self._in_turn(method, review)
        finally:
            self._bytes -= size

    async def _in_turn(self, method: ReviewMethod, review: Review) -> ReviewResult:
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                await self._turn.acquire()
        except TimeoutError:
            raise BusyError(
                f"too many SlurmJobs are waiting for review: its turn did not come within {LONGEST_WAIT_S:g} s;"
                " create it again in a few seconds"
            ) from None
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, method, review)
        finally:
            self._turn.release()
