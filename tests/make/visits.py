"""How much work something is, whatever machine it runs on: counted calls, and looks at uids."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from typing_extensions import override


class Visits:
    """Counts calls, and what C loops do with uids: hash and compare them."""

    count = 0


class CountedUid(str):
    """A pod's uid that is counted wherever it is looked at."""

    __slots__ = ()

    @override
    def __hash__(self) -> int:
        Visits.count += 1
        return super().__hash__()

    @override
    def __eq__(self, other: object) -> bool:
        Visits.count += 1
        return super().__eq__(other)


def visits(look: Callable[[], object]) -> int:
    def called(_frame: FrameType, event: str, _arg: Any) -> None:
        Visits.count += event == "call"

    Visits.count = 0
    before = sys.getprofile()
    sys.setprofile(called)
    try:
        look()
    finally:
        sys.setprofile(before)
    return Visits.count
