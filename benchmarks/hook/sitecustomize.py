"""Python runs this at its start where PYTHONPATH names this folder: pyinstrument in our services, and in nothing else.

What it found is written to the service's working directory when the service ends in order.
"""

import atexit
import sys
from pathlib import Path

_SERVICES = {"webhook", "extender", "controllers"}


def _profile(service: str) -> None:
    from pyinstrument import Profiler  # noqa: PLC0415  # other programs need not have it

    profiler = Profiler(interval=0.001, async_mode="disabled")

    def write() -> None:
        profiler.stop()
        tree = profiler.output_text(show_all=True, time="percent_of_total")
        flat = profiler.output_text(show_all=True, time="percent_of_total", flat=True)
        Path(f"{service}.profile").write_text(f"{tree}\n{flat}\n")

    atexit.register(write)
    profiler.start()


if sys.orig_argv[1:2] == ["-m"] and sys.orig_argv[2] in _SERVICES:
    _profile(sys.orig_argv[2])
