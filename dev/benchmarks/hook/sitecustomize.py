"""Run by Python at start-up if PYTHONPATH names this folder.

Runs pyinstrument in our services only.

SIGUSR2 begins a profile; the next one ends it and saves it in the service's working directory. It
counts the CPU time of the loop's thread: waiting costs nothing.
"""

import signal
import sys
import time
from pathlib import Path

_SERVICES = {"webhook", "extender", "controllers", "leader"}


def _profile() -> None:
    from pyinstrument import Profiler, stack_sampler  # noqa: PLC0415  # other programs need not have it

    stack_sampler.get_stack_sampler().timer_func = time.thread_time
    profiler = Profiler(interval=0.0005, async_mode="disabled")

    def toggle(*_: object) -> None:
        if not profiler.is_running:
            profiler.reset()  # type: ignore[no-untyped-call]  # the library leaves it so
            profiler.start()
            return
        profiler.stop().save("draft.pyisession")
        Path("draft.pyisession").rename("profile.pyisession")

    signal.signal(signal.SIGUSR2, toggle)


if sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2] in _SERVICES:
    _profile()
