"""What slurmctld makes of the nodes that workers are to register: the control plane has it tried, NodeSets go by it.

A slurmd that its slurmctld refuses ends, again and again; so workers get only what would be taken.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import msgspec

from slurmoperator.objects.nodeset import NodeSetObject
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values import faults

_LONGEST = 200
_NOBODY_LOOKED = "slurm-operator is about to have it tried"


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedConf:
    """What is known of a NodeSet's `extraConf`."""

    extra_conf: str
    is_known: bool
    words: str = ""
    """Why slurmctld would refuse it, "" if it would not; or why that is not known."""


class TriedConfs:
    """Of all NodeSets, by their uids."""

    def __init__(self) -> None:
        self._found: dict[str, TriedConf] = {}
        self._wake: Callable[[str], None] = lambda _: None

    def follow(self, wake: Callable[[str], None]) -> None:
        """Have this called with the uid of a NodeSet that has news."""
        self._wake = wake

    def put(self, uid: str, found: TriedConf) -> None:
        """Remember what is known now."""
        if self._found.get(uid) != found:
            self._found[uid] = found
            self._wake(uid)

    def of(self, node_set: NodeSetObject) -> TriedConf | None:
        """Return what is known of a NodeSet's `extraConf` as it is; None if nobody has looked."""
        found = self._found.get(node_set.metadata.uid)
        return found if found and found.extra_conf == node_set.spec.extra_conf else None

    def forget(self, uid: str) -> None:
        """Forget a NodeSet that is gone."""
        self._found.pop(uid, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfInForce:
    """Which `extraConf` workers get."""

    node_set: NodeSetObject
    """As it would be if its user wanted only what would be taken."""
    accepted: str | None
    """What slurmctld would take; None if nothing was ever tried."""
    truth: Literal["True", "False", "Unknown"]
    reason: str
    text: str

    @property
    def refused(self) -> str:
        """Why there are no new workers; "" if there may be."""
        return self.text if self.truth == "False" and self.accepted is None else ""


def in_force(node_set: NodeSetObject, tried: TriedConf | None) -> ConfInForce:
    """Return which `extraConf` workers get: while it is not known whether slurmctld takes it, that which it took last."""
    asked, accepted = node_set.spec.extra_conf, node_set.status.accepted_conf
    is_good = tried is not None and tried.is_known and not tried.words
    if is_good or asked == accepted or not asked.strip():
        return ConfInForce(
            node_set=node_set, accepted=asked, truth="True", reason="InForce", text=""
        )
    kept = node_set
    if accepted is not None:
        spec = msgspec.structs.replace(node_set.spec, extra_conf=accepted)
        kept = msgspec.structs.replace(node_set, spec=spec)
    get = "" if accepted is None else f"; workers get what it took last, {_shown(accepted)}"
    if tried is None:
        old = _told(node_set)
        if old is not None:
            truth, reason, text = old.status, old.reason, old.message
        else:
            truth, reason, text = "Unknown", "NotTried", f"{_NOBODY_LOOKED}{get}"
    elif tried.is_known:
        truth, reason = "False", "Refused"
        text = f"spec.extraConf, {_shown(asked)}: slurmctld says: {tried.words}{get}"
    else:
        truth, reason, text = "Unknown", "NotTried", f"{tried.words}{get}"
    return ConfInForce(node_set=kept, accepted=accepted, truth=truth, reason=reason, text=text)


def _told(node_set: NodeSetObject) -> ObjectCondition | None:
    """Return what it was told of this very `extraConf`, if that was anything."""
    for condition in node_set.status.conditions:
        if condition.type == "Configured" and condition.status != "True":
            is_same = condition.observed_generation == node_set.metadata.generation
            return condition if is_same else None
    return None


def _shown(conf: str) -> str:
    return faults.shortened(" ".join(conf.split()), _LONGEST) or "nothing"
