"""The hostile, each actor as a process of its own: whoever measures must not wait for them.

An actor goes through its attacks in ever new order, one burst after the other, until told to stop. A burst that fails has
met a bound of ours or of the API server's; it is counted, and its last words are kept.
"""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING

from tests.soak.hostile import neighbours, slurm_users, tenants
from tests.soak.hostile.figures import Burst
from tests.soak.hostile.grounds import Grounds, Site

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

Attacks = Mapping[str, Callable[[], None]]
"""Bursts by what a person calls them; each lasts some seconds, and leaves nothing."""
ACTORS: Mapping[str, Callable[[Grounds], Attacks]] = {
    "a tenant": tenants.attacks,
    "a neighbour on the network": neighbours.attacks,
    "a Slurm user": slurm_users.attacks,
}
_PAUSES_S = (0.5, 2.0)
_LOOKS_EVERY_S = 1.0
_ENDS_WITHIN_S = 120.0
_LONGEST_WORDS = 200
_LAST = 19
"""The least of all priorities, as `nice` counts them."""


class Crowd:
    """All actors, at work."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._context = context
        self._go, self._stop = context.Event(), context.Event()
        self._sent: Queue[Burst] = context.Queue()
        self._bursts: list[Burst] = []
        self._processes: Sequence[BaseProcess] = ()

    @contextmanager
    def gathered(self, site: Site) -> Iterator[None]:
        """Have them there, ready to begin, until the end of the block: a process takes its time to start."""
        self._processes = processes = [
            self._context.Process(
                target=_act,
                args=(actor, site, self._go, self._stop, self._sent),
                daemon=True,
            )
            for actor in ACTORS
        ]
        for process in processes:
            process.start()
        try:
            yield
        finally:
            self._go.set()
            self._stop.set()
            for process in processes:
                process.join(1)
                process.terminate()

    def begin(self) -> None:
        """Let them go at it."""
        self._go.set()

    def end(self) -> None:
        """Tell them to stop, and wait until their last bursts are over."""
        self._stop.set()
        end_s = time.monotonic() + _ENDS_WITHIN_S
        while any(process.is_alive() for process in self._processes) and time.monotonic() < end_s:
            self.bursts()  # a queue that nobody reads keeps its writer
            time.sleep(0.2)

    def bursts(self) -> Sequence[Burst]:
        """Those that are over."""
        with contextlib.suppress(Empty):
            while True:
                self._bursts.append(self._sent.get_nowait())
        return self._bursts


def _act(actor: str, site: Site, go: Event, stop: Event, sent: "Queue[Burst]") -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who measures ends us
    _come_last()
    dice = random.Random(f"{site.seed} {actor}")  # noqa: S311  # seeded: the same draws come again
    parent = multiprocessing.parent_process()
    attacks = ACTORS[actor](Grounds(site, dice))
    while not go.wait(_LOOKS_EVERY_S):
        if not (parent and parent.is_alive()):
            return
    while True:
        for what in dice.sample(tuple(attacks), len(attacks)):
            if stop.wait(dice.uniform(*_PAUSES_S)) or not (parent and parent.is_alive()):
                return
            sent.put(_burst(actor, what, attacks[what]))


def _come_last() -> None:
    """Take only processor time that nobody else wants: elsewhere, whoever attacks has a machine of their own."""
    os.setsid()  # the kernel groups processes by session, and weighs the groups first: sched(7)
    os.nice(_LAST)
    with contextlib.suppress(OSError):  # not every kernel groups them
        Path("/proc/self/autogroup").write_text(str(_LAST))


def _burst(actor: str, what: str, attack: Callable[[], None]) -> Burst:
    began_s, failure = time.monotonic(), ""
    try:
        attack()
    except Exception as error:  # noqa: BLE001  # whatever it met, the next attack comes
        failure = f"{type(error).__name__}: {error}"[:_LONGEST_WORDS]
    return Burst(actor, what, began_s, time.monotonic(), failure)
