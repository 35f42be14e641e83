"""Whether slurmctld accepts the `extraConf` of NodeSets; the controller of daemons has it tried.

A slurmd that its slurmctld refuses exits again and again, so workers get only what would be accepted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values import faults

_LONGEST = 200
_PENDING = "slurmctld has not checked it yet"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfTrial:
    """The result of trying a NodeSet's `extraConf`."""

    extra_conf: str
    is_known: bool
    words: str = ""
    """Why slurmctld would refuse it, or "" if it would not; or why that is unknown."""


class ConfTrials:
    """The trials of all NodeSets, by their uids."""

    def __init__(self) -> None:
        self._trials: dict[str, ConfTrial] = {}
        self._wake: Callable[[str], None] = lambda _: None

    def follow(self, wake: Callable[[str], None]) -> None:
        """Call this with the uid of each NodeSet whose result changes."""
        self._wake = wake

    def put(self, uid: str, trial: ConfTrial) -> None:
        """Store a result."""
        if self._trials.get(uid) != trial:
            self._trials[uid] = trial
            self._wake(uid)

    def of(self, node_set: NodeSetObject) -> ConfTrial | None:
        """Return the result for a NodeSet's present `extraConf`; None if it has not been tried."""
        trial = self._trials.get(node_set.metadata.uid)
        return trial if trial and trial.extra_conf == node_set.spec.extra_conf else None

    def forget(self, uid: str) -> None:
        """Drop a NodeSet that is gone."""
        self._trials.pop(uid, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfInForce:
    """The `extraConf` that workers get."""

    node_set: NodeSetObject
    """The NodeSet with the `extraConf` that workers get."""
    accepted: str | None
    """What slurmctld last accepted; None if nothing was ever tried."""
    truth: Literal["True", "False", "Unknown"]
    reason: str
    text: str

    @property
    def refused(self) -> str:
        """Why there are no new workers; "" if there may be."""
        return self.text if self.truth == "False" and self.accepted is None else ""


def in_force(node_set: NodeSetObject, trial: ConfTrial | None) -> ConfInForce:
    """Return the `extraConf` that workers get: the last accepted one until the present one is."""
    requested, accepted = node_set.spec.extra_conf, node_set.status.accepted_conf
    is_good = trial is not None and trial.is_known and not trial.words
    if is_good or requested == accepted or not requested.strip():
        return ConfInForce(
            node_set=node_set, accepted=requested, truth="True", reason="InForce", text=""
        )
    effective = node_set
    if accepted is not None:
        spec = msgspec.structs.replace(node_set.spec, extra_conf=accepted)
        effective = msgspec.structs.replace(node_set, spec=spec)
    fallback = (
        "" if accepted is None else f"; workers keep the last accepted value: {_shown(accepted)}"
    )
    if trial is None:
        old = _last_condition(node_set)
        if old is not None:
            truth, reason, text = old.status, old.reason, old.message
        else:
            truth, reason, text = "Unknown", "NotTried", f"{_PENDING}{fallback}"
    elif trial.is_known:
        truth, reason = "False", "Refused"
        text = f"spec.extraConf, {_shown(requested)}: slurmctld says: {trial.words}{fallback}"
    else:
        truth, reason, text = "Unknown", "NotTried", f"{trial.words}{fallback}"
    return ConfInForce(node_set=effective, accepted=accepted, truth=truth, reason=reason, text=text)


def _last_condition(node_set: NodeSetObject) -> ObjectCondition | None:
    """Return the last condition about exactly this `extraConf`, if there is one."""
    for condition in node_set.status.conditions:
        if condition.type == "Configured" and condition.status != "True":
            is_same = condition.observed_generation == node_set.metadata.generation
            return condition if is_same else None
    return None


def _shown(conf: str) -> str:
    return faults.shortened(" ".join(conf.split()), _LONGEST) or "nothing"
