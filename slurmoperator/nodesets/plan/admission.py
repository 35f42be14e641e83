"""Whether a NodeSet may have workers at all, and with which `extraConf`: pure, and known before anything is created for it."""

from collections.abc import Iterable
from typing import Final

import msgspec

from slurmoperator.nodesets.conf_trials import ConfTrial
from slurmoperator.nodesets.plan import placing
from slurmoperator.nodesets.plan.look import ConfInForce, Objection
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.parts import Truth, condition_of
from slurmoperator.objects.workers import is_on_nodes, namesakes
from slurmruntime.values import faults

_LONGEST: Final = 200
_PENDING: Final = "slurmctld has not checked it yet"


def admit(
    node_set: NodeSetObject, trial: ConfTrial | None, others: Iterable[NodeSetObject]
) -> tuple[ConfInForce, Objection | None]:
    """Return the `extraConf` that workers get, and why there are none because of it or of the other NodeSets of its Slurm."""
    is_leaving = node_set.metadata.deletion_timestamp is not None
    return in_force(node_set, trial), None if is_leaving else _refusal(node_set, others)


def _refusal(node_set: NodeSetObject, others: Iterable[NodeSetObject]) -> Objection | None:
    try:
        if is_on_nodes(node_set):
            placing.constraints_of(node_set)
    except faults.Refusal as error:
        return Objection(reason="BadInput", text=error.text)
    if older := namesakes((node_set, *others)).get(node_set.metadata.uid, ""):
        text = f"its Slurm node names clash with those of NodeSet {older}: set another spec.template.spec.hostname in one of them"
        return Objection(reason="BadInput", text=text)
    return None


def in_force(node_set: NodeSetObject, trial: ConfTrial | None) -> ConfInForce:
    """Return the `extraConf` that workers get: the last accepted one until the present one is. `trial` is None before the first."""
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
    truth: Truth
    if trial is None:
        truth, reason, text = "Unknown", "NotTried", f"{_PENDING}{fallback}"
        old = condition_of(node_set.status.conditions, "Configured")
        # The last condition holds if it is about exactly this `extraConf`.
        is_same = old and old.observed_generation == node_set.metadata.generation
        if old and is_same and old.status != "True":
            truth, reason, text = old.status, old.reason, old.message
    elif trial.is_known:
        truth, reason = "False", "Refused"
        text = f"spec.extraConf, {_shown(requested)}: slurmctld says: {trial.words}{fallback}"
    else:
        truth, reason, text = "Unknown", "NotTried", f"{trial.words}{fallback}"
    return ConfInForce(node_set=effective, accepted=accepted, truth=truth, reason=reason, text=text)


def _shown(conf: str) -> str:
    return faults.shortened(" ".join(conf.split()), _LONGEST) or "nothing"
