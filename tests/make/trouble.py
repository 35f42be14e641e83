"""Writes and reads that go wrong: counted over both peers, so that each of them can be struck in turn."""

import enum
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


class Fault(enum.Enum):
    """What becomes of the write that is struck."""

    REFUSED = "no connection: nothing was done, and the client knows"
    LOST_REQUEST = "no answer: nothing was done"
    LOST_REPLY = "no answer: it was done all the same"


class Trouble:
    """Strikes one write or one read, or none."""

    def __init__(self, fault: Fault = Fault.REFUSED, *, at: int = 0, at_read: int = 0) -> None:
        """at: which write, at_read: which read, counted from 1; 0 is none."""
        self._fault = fault
        self._at = at
        self._at_read = at_read
        self.writes: list[str] = []
        """All that were tried, in order."""
        self.reads: list[str] = []
        """Likewise."""

    def write(self, what: str, do: Callable[[], T], *, fail: Callable[[Fault], Exception]) -> T:
        self.writes.append(what)
        if len(self.writes) != self._at:
            return do()
        if self._fault is Fault.LOST_REPLY:
            do()
        raise fail(self._fault)

    def read(self, what: str, do: Callable[[], T], *, fail: Callable[[Fault], Exception]) -> T:
        self.reads.append(what)
        if len(self.reads) == self._at_read:
            raise fail(self._fault)
        return do()


class Dead(BaseException):
    """The process is no more."""


def first_and_last(reads: list[str]) -> list[int]:
    """The numbers of the first and the last read of each object: many are read again and again."""
    first = {each: at for at, each in reversed([*enumerate(reads, 1)])}
    return sorted({*first.values(), *{each: at for at, each in enumerate(reads, 1)}.values()})


def dying(trouble: Trouble, at: int, *, is_done: bool) -> list[str]:
    """Let the leader die at one write, which is done or not; return where it died."""
    write, count, died = trouble.write, 0, list[str]()

    def writes(what: str, *args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        if count != at:
            return write(what, *args, **kwargs)
        died.append(what)
        if is_done:
            write(what, *args, **kwargs)
        raise Dead

    trouble.write = writes  # type: ignore[method-assign]  # the first leader's end
    return died
