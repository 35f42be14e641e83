"""The loop."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Final

from slurmclient.errors import SlurmError, TooOld, Unauthorized
from slurmclient.watching.events import Event, V
from slurmclient.watching.picture import Clock, Picture

_LONGEST_PAUSE_S: Final = 30.0
"""Between two looks while Slurm cannot answer."""


async def watch(
    picture: Picture[V], *, interval_s: float, clock: Clock = time.monotonic
) -> AsyncIterator[Event[V]]:
    """Look again and again, and give what has changed; while Slurm cannot answer there are no events.

    Raises:
        Unauthorized: Slurm does not accept the token.
        TooOld: it does not have what is watched.
    """
    failures = 0
    while True:
        began = clock()
        try:
            events = await picture.look()
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
    return (
        max(interval_s, min(interval_s * 2**failures, _LONGEST_PAUSE_S)) if failures else interval_s
    )
