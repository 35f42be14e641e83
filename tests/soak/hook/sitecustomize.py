"""Run by Python at start-up if PYTHONPATH names this folder.

Lets the wall clock of our services be wrong: by as many seconds as the file `clock-is-ahead-s` in a service's working
directory says; by none if there is no such file. The monotonic clock stays right, as it does on a machine whose time is set.
"""

import sys
from datetime import datetime, timedelta
from pathlib import Path

_SERVICES = {"webhook", "extender", "controllers", "leader"}
_AHEAD = Path("clock-is-ahead-s")


def _wrong() -> None:
    from slurmruntime.process.clock import SystemClock  # noqa: PLC0415  # other programs need not have it

    true_now = SystemClock.now

    def now(self: SystemClock) -> datetime:
        try:
            ahead = timedelta(seconds=float(_AHEAD.read_text()))
        except FileNotFoundError:
            return true_now(self)
        return true_now(self) + ahead

    SystemClock.now = now  # type: ignore[method-assign]  # that is what it is for


if sys.orig_argv[1:2] == ["-m"] and _SERVICES.intersection(sys.orig_argv[2:5]):
    _wrong()
