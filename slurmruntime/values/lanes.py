"""Serve several tenants round robin, each first in, first out."""

from collections import OrderedDict, deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Lanes(Generic[K]):
    """First in, first out within a lane; one key of each lane in turn. Every step takes O(1)."""

    def __init__(self) -> None:
        self._lanes: OrderedDict[Hashable, deque[K]] = OrderedDict()
        """The lane to serve next comes first; an empty lane is dropped."""

    def put(self, lane: Hashable, key: K) -> None:
        """Append a key to a lane."""
        self._lanes.setdefault(lane, deque()).append(key)

    def take(self) -> K:
        """Remove and return the next key; raise KeyError if there is none."""
        lane, keys = self._lanes.popitem(last=False)
        key = keys.popleft()
        if keys:
            self._lanes[lane] = keys
        return key
