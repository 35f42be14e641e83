"""Renders a NodeSet's objects other than its pods."""

from typing import Final

from slurmoperator.objects.labels import PROTECTED_LABEL, WORKER_APP
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.rendering import ssh
from slurmoperator.rendering.body import BodyOwner, owned_body
from slurmoperator.rendering.node_sets.worker import ssh_config_map
from slurmruntime.model.objects import JsonObject

_ALL_OF_THEM: Final = 2**31 - 1
"""As `minAvailable`: no protected worker may be evicted. A percentage would depend on the scale of the pods' owner, and so allow evictions
while a NodeSet scales in."""


def budget_name(node_set: str) -> str:
    """Return the name of the PodDisruptionBudget of a NodeSet's protected workers."""
    return f"{node_set}-workers"


def node_set_bodies(node_set: NodeSetObject) -> tuple[JsonObject, ...]:
    """Return the bodies of a NodeSet other than its pods."""
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    name, spec = node_set.metadata.name, node_set.spec
    bodies = []
    if spec.workload_disruption_protection:
        budget = {
            "minAvailable": _ALL_OF_THEM,
            "selector": {"matchLabels": {**owner.selecting, PROTECTED_LABEL: "true"}},
        }
        kind, parts = "PodDisruptionBudget", {"spec": budget}
        bodies.append(
            owned_body(owner, kind, budget_name(name), api_version="policy/v1", parts=parts)
        )
    if spec.ssh and spec.has_ssh:
        data = {ssh.SSHD_FILE: ssh.sshd_config(spec.ssh.extra_sshd_config)}
        bodies.append(owned_body(owner, "ConfigMap", ssh_config_map(name), parts={"data": data}))
    return tuple(bodies)
