"""Reviews of SlurmJobs apart from those of pods, which every new pod waits for.

A script is read character by character, so the dearest one takes some fifty times as long as a pod. One thread reads one
at a time; the event loop, which answers for pods, gets the interpreter back within the switch interval.
"""

import asyncio
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from webhook.reviewing import Look, Reviewed
from webhook.wire import Review

LONGEST_WAIT_S: Final = 2.0
"""The API server waits for five seconds."""
MOST_BYTES: Final = 16 * 2**20
"""Of all objects that wait; one has at most 3 MiB."""

_SWITCH_S: Final = 0.0005
"""Switch interval of the interpreter: about as long as the review of a pod takes."""


class BusyError(Exception):
    """Too many reviews are waiting already; the message says so to whoever wants one more."""


class ReviewsApart:
    """One thread for reviews that may take long, and how long they may wait for it."""

    def __init__(
        self, *, longest_wait_s: float = LONGEST_WAIT_S, most_bytes: int = MOST_BYTES
    ) -> None:
        self._longest_wait_s = longest_wait_s
        self._most_bytes = most_bytes
        self._turn = asyncio.Lock()
        self._bytes = 0
        """Of those that wait, and of the one whose turn it is."""
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="reviews")
        sys.setswitchinterval(_SWITCH_S)

    async def run(self, look: Look, review: Review) -> Reviewed:
        """Review an object when its turn comes.

        Raises:
            BusyError: There are too many.
            MalformedObjectError: The object is not of its kind.
        """
        size = len(review.document)
        if self._bytes + size > self._most_bytes:
            raise BusyError(
                f"SlurmJobs of {self._bytes} bytes wait to be reviewed, and at most {self._most_bytes} may: create it"
                " again in some seconds"
            )
        self._bytes += size
        try:
            return await self._in_turn(look, review)
        finally:
            self._bytes -= size

    async def _in_turn(self, look: Look, review: Review) -> Reviewed:
        try:
            async with asyncio.timeout(self._longest_wait_s):
                await self._turn.acquire()
        except TimeoutError:
            raise BusyError(
                f"so many SlurmJobs are being reviewed that its turn did not come within {self._longest_wait_s:g} s:"
                " create it again in some seconds"
            ) from None
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, look, review)
        finally:
            self._turn.release()
