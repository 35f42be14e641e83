"""Polling, with longer pauses while Slurm cannot answer."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from slurmclient.errors import SlurmError, TooOld, Unauthorized
from slurmclient.watching.events import Event, V
from slurmclient.watching.picture import Clock, Picture

_LONGEST_PAUSE_S: Final = 30.0
"""The longest pause between polls while Slurm cannot answer."""
_DOUBLINGS: Final = 16
"""Maximum number of doublings of the interval; a float overflows after a thousand."""


async def watch(
    picture: Picture[V], *, interval_s: float, clock: Clock = time.monotonic
) -> AsyncIterator[Event[V]]:
    """Yield the changes that repeated polls find, in order; failed polls are repeated.

    Args:
        interval_s: The time between the beginnings of two polls.

    Raises:
        Unauthorized: If Slurm does not accept the token.
        TooOld: If this Slurm does not have such objects.
    """
    failures = 0
    while True:
        began = clock()
        try:
            events = await picture.poll()
            failures = 0
        except (Unauthorized, TooOld):
            raise
        except SlurmError:
            events = []
            failures += 1
        for event in events:
            yield event
        await asyncio.sleep(max(0.0, pause_s(interval_s, failures) - (clock() - began)))


def pause_s(interval_s: float, failures: int) -> float:
    """Return the time between polls: it doubles with each failure, up to 30 s."""
    if not failures:
        return interval_s
    doubled_s = interval_s * float(2 ** min(failures, _DOUBLINGS))
    return max(interval_s, min(doubled_s, _LONGEST_PAUSE_S))
