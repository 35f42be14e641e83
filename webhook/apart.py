"""Review SlurmJobs on a thread of their own, so that pods never wait for them.

A script is read character by character, so the most expensive one takes some fifty times as long as a pod.
One thread reads one script at a time; the event loop, which reviews pods, gets the interpreter back within
the switch interval. Namespaces have their turn one after the other, and none fills the bytes that may wait.
"""

import asyncio
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from slurmruntime.values.lanes import Lanes
from webhook.reviewing import ReviewMethod, ReviewResult
from webhook.wire import Review

LONGEST_WAIT_S: Final = 2.0
"""The API server gives up after five seconds."""
MOST_BYTES: Final = 16 * 2**20
"""Size of all waiting objects together; one has at most 3 MiB."""
MOST_BYTES_OF_ONE: Final = MOST_BYTES // 4
"""The same of one namespace."""

_SWITCH_S: Final = 0.0005
"""Switch interval of the interpreter: about as long as a pod's review takes."""


class BusyError(Exception):
    """Too many reviews are waiting already; the message is for the requester."""


class ReviewThread:
    """Runs slow reviews on one thread, with a bound on how long and how many may wait."""

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: Lanes[asyncio.Future[None]] = Lanes()
        """By namespace; those that are done have given up."""
        self._bytes = 0
        """Size of the waiting objects and of the one under review."""
        self._bytes_of: Counter[str] = Counter()
        """The same by namespace."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reviews")
        sys.setswitchinterval(_SWITCH_S)

    async def run(self, method: ReviewMethod, review: Review) -> ReviewResult:
        """Review an object when its turn comes.

        Raises:
            BusyError: Too many reviews are waiting, or its turn did not come in time.
            MalformedObjectError: The object is not of its kind.
        """
        size, namespace = len(review.document), review.namespace
        for waiting, most in (
            (self._bytes, MOST_BYTES),
            (self._bytes_of[namespace], MOST_BYTES_OF_ONE),
        ):
            if waiting + size > most:
                raise BusyError(
                    f"too many SlurmJobs are waiting for review ({waiting} bytes, at most {most}): create"
                    " it again in a few seconds"
                )
        self._bytes += size
        self._bytes_of[namespace] += size
        try:
            return await self._in_turn(method, review)
        finally:
            self._bytes -= size
            self._bytes_of[namespace] -= size
            if not self._bytes_of[namespace]:
                del self._bytes_of[namespace]

    async def _in_turn(self, method: ReviewMethod, review: Review) -> ReviewResult:
        try:
            async with asyncio.timeout(LONGEST_WAIT_S):
                await self._wait_for_turn(review.namespace)
        except TimeoutError:
            raise BusyError(
                f"too many SlurmJobs are waiting for review: its turn did not come within {LONGEST_WAIT_S:g} s;"
                " create it again in a few seconds"
            ) from None
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, method, review)
        finally:
            self._pass_on()

    async def _wait_for_turn(self, namespace: str) -> None:
        if not self._is_taken:
            self._is_taken = True
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.put(namespace, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # its turn had just come
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        self._is_taken = False
        while not self._is_taken:
            try:
                turn = self._waiting.take()
            except KeyError:
                return
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)
