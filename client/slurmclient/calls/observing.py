"""Observing calls with a context manager around each, from the moment it has a connection."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TypeAlias

from slurmclient.errors import SlurmError

OnCall: TypeAlias = Callable[[str, float, str], None]
"""Called after every call with the operation, its seconds, and its outcome.

The outcome is `ok`, an error's `outcome` or `cancelled`.
"""

Observe: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Returns a context manager for a call, given the call's label; it sees the call's `SlurmError`."""


def reporting(on_call: OnCall) -> Observe:
    """Return an observer that reports every call."""

    @contextmanager
    def observe(label: str) -> Iterator[None]:
        began = time.perf_counter()
        outcome = "cancelled"
        try:
            yield
            outcome = "ok"
        except SlurmError as error:
            outcome = error.outcome
            raise
        finally:
            on_call(label, time.perf_counter() - began, outcome)

    return observe
