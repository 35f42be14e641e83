"""Count what a call costs: lines and calls of Python, and bytes of memory. No clock decides."""

import gc
import sys
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any


@dataclass(frozen=True, slots=True)
class Cost:
    """What a call has cost."""

    steps: int
    peak_bytes: int


def measure(work: Callable[[], object]) -> Cost:
    """Count the lines and calls of Python, and the peak of what is allocated."""
    steps = 0

    def count(_frame: FrameType, _event: str, _argument: object) -> Any:
        nonlocal steps
        steps += 1
        return count

    before = sys.gettrace()
    gc.disable()  # it would finalize what other tests left
    tracemalloc.start()
    try:
        sys.settrace(count)
        try:
            work()
        finally:
            sys.settrace(before)
        return Cost(steps, tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()
        gc.enable()


class _TooManySteps(BaseException):
    """Not an `Exception`, which a reader may suppress."""


def steps_up_to(most: int, work: Callable[[], object]) -> int:
    """Count the lines and calls of Python; stop the work as soon as they are more than `most`, and return one more."""
    steps = 0

    def count(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal steps
        steps += 1
        # At a line: Python ignores what is raised while a generator is closed.
        if steps > most and event == "line":
            raise _TooManySteps
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    except _TooManySteps:
        pass
    finally:
        sys.settrace(before)
    return min(steps, most + 1)


def called_functions(work: Callable[[], object], root: str) -> frozenset[tuple[str, str]]:
    """Return the file and name of all functions below a folder that are called."""
    seen: set[tuple[str, str]] = set()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            code = frame.f_code
            if code.co_filename.startswith(root):
                seen.add((code.co_filename[len(root) :].lstrip("/"), code.co_qualname))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return frozenset(seen)
