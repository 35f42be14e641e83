"""Refused submits, counted until one is accepted; a new leader has none and simply tries again."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from dataclasses import fields
from datetime import datetime, timedelta
from typing import Generic, TypeVar

from bridge.domain.lifecycle.decision import SubmitRefusal
from bridge.domain.model.placeholder import PlaceholderSpec
from slurmruntime.values import backoff
from slurmruntime.values.faults import shortened
from slurmruntime.values.ids import PodUid, WorkloadKey

K = TypeVar("K")


class Refusals(Generic[K]):
    """The latest refusal of each key's submits."""

    def __init__(self) -> None:
        self._last: dict[K, SubmitRefusal] = {}
        self._members: dict[K, frozenset[PodUid]] = {}
        self._of: dict[PodUid, K] = {}

    def get(self, key: K) -> SubmitRefusal | None:
        """Return the last one, with how many came in a row; None since a submit was accepted."""
        return self._last.get(key)

    def add(
        self,
        key: K,
        text: str,
        *,
        at: datetime,
        members: Iterable[PodUid] = (),
        is_of_nodes: bool = False,
    ) -> SubmitRefusal:
        """Count one more refusal of a submit that was for these pods."""
        before = self._last.get(key)
        self.clear(key)
        refusal = SubmitRefusal(
            attempts=before.attempts + 1 if before else 1,
            at=at,
            text=shortened(text),
            is_of_nodes=is_of_nodes,
        )
        self._last[key] = refusal
        self._members[key] = frozenset(members)
        self._of.update(dict.fromkeys(self._members[key], key))
        return refusal

    def clear(self, key: K) -> None:
        """Forget the key's refusals: accepted, or the request has changed or is gone."""
        self._last.pop(key, None)
        for pod in self._members.pop(key, ()):
            self._of.pop(pod, None)

    def clear_for(self, pod: PodUid) -> None:
        """Forget the refusals of a submit that was for this pod."""
        if (key := self._of.get(pod)) is not None:
            self.clear(key)


_FIRST, _LONGEST = timedelta(seconds=1), timedelta(seconds=10)
"""How long a refusal counts for other pods, at first and at most. Not longer: when a limit has room
again, one of very many should be submitted soon."""

_MOST_SHARED = 1024

_OWN = frozenset({"identity", "name", "comment", "extra", "also"})
"""Fields that do not affect whether Slurm accepts a job; `also` is compared separately."""


class RefusalCache:
    """Shared refusals: of many identical requests, one is retried for all.

    Ten thousand pods beyond a limit would otherwise each ask again every five minutes, which is 33
    submits a second.
    """

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, tuple[WorkloadKey, SubmitRefusal]] = OrderedDict()

    def get(self, spec: PlaceholderSpec, now: datetime) -> str | None:
        """Return what Slurm has just answered to a request like this; None means to ask.

        The workload that asked last may ask again whenever its own back-off is over.
        """
        by, last = self._last.get(_likeness(spec), (spec.identity.key, None))
        if last is None or by == spec.identity.key:
            return None
        is_old = not backoff.left(last.attempts, last.at, now, first=_FIRST, cap=_LONGEST)
        return None if is_old else last.text

    def refused(self, spec: PlaceholderSpec, text: str, now: datetime) -> None:
        """Note Slurm's refusal."""
        like = _likeness(spec)
        _, before = self._last.pop(like, (None, None))
        attempts = before.attempts + 1 if before else 1
        self._last[like] = spec.identity.key, SubmitRefusal(attempts=attempts, at=now, text=text)
        while len(self._last) > _MOST_SHARED:
            self._last.popitem(last=False)

    def accepted(self, spec: PlaceholderSpec) -> None:
        """Note that Slurm has accepted such a request."""
        self._last.pop(_likeness(spec), None)


def _likeness(spec: PlaceholderSpec) -> Hashable:
    return (
        tuple(getattr(spec, field.name) for field in fields(spec) if field.name not in _OWN),
        tuple(map(_likeness, spec.also)),
    )
