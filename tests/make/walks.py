"""Which modules of the product a piece of work enters, and how often: a call from another module of it is an entry."""

import asyncio
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]


@contextmanager
def walk(*rooms: str, by: str = "") -> Iterator[Counter[str]]:
    """Count the entries into the modules of these rooms by the current task, until the block ends; `by` counts only those from one module.

    Vocabulary that everybody uses is in no room, and a caller outside the product is passed over. What a generator of
    another module does once it runs is an entry, too.
    """
    entries = Counter[str]()
    seen: dict[int, FrameType] = {}
    task = asyncio.current_task()

    def called(frame: FrameType, event: str, _arg: Any) -> None:
        if event != "call" or id(frame) in seen or _running_task() is not task:
            return
        seen[id(frame)] = frame  # kept, so that its id stays its own
        room = module(frame)
        if room is None or not room.startswith(tuple(f"{name}." for name in rooms)):
            return
        caller = frame.f_back
        while caller is not None and module(caller) is None:
            caller = caller.f_back
        origin = None if caller is None else module(caller)
        if origin != room and by in ("", room, origin):
            entries[room] += 1

    before = sys.getprofile()
    sys.setprofile(called)
    try:
        yield entries
    finally:
        sys.setprofile(before)


def _running_task() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def module(frame: FrameType) -> str | None:
    """Its module; None for whatever is not the product's."""
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / "tests"):
        return None
    place = path.relative_to(ROOT)
    return None if place.parts[0].startswith(".") else ".".join(place.with_suffix("").parts)
