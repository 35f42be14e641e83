"""Renders a NodeSet's objects other than its pods, and returns the renderer of its pods."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import PROTECTED_LABEL, WORKER_APP
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.rendering import ssh
from slurmoperator.rendering.body import Body, BodyOwner, owned_body
from slurmoperator.rendering.node_sets.worker import ssh_config_map, worker_pod
from slurmoperator.rendering.site import ControlSite
from slurmruntime.values.faults import Refused

ALL_OF_THEM: Final = 2**31 - 1
"""As `minAvailable`: no protected worker may be evicted, regardless of their number."""


def worker_templates(
    controllers: Callable[[str, str], ControllerObject | None], site: ControlSite
) -> Callable[[NodeSetObject, WorkerKey, int], Mapping[str, Any] | Refused]:
    """Return the function with which the controller of NodeSets renders the pods of workers."""

    def template(
        node_set: NodeSetObject, key: WorkerKey, key_step: int
    ) -> Mapping[str, Any] | Refused:
        controller = controllers(node_set.metadata.namespace, node_set.spec.controller_ref.name)
        return worker_pod(node_set, key, controller, site, key_step=key_step)

    return template


def budget_name(node_set: str) -> str:
    """Return the name of the PodDisruptionBudget of a NodeSet's protected workers."""
    return f"{node_set}-workers"


def node_set_bodies(
    node_set: NodeSetObject, *, min_available: int = ALL_OF_THEM
) -> tuple[Body, ...]:
    """Return the bodies of a NodeSet other than its pods.

    `min_available` protected workers must remain after evictions. An absolute number, because a percentage would depend on the
    scale of the pods' owner, and so allow evictions while a NodeSet scales in.
    """
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    spec = node_set.spec
    bodies = []
    if spec.workload_disruption_protection:
        budget = {
            "minAvailable": min_available,
            "selector": {"matchLabels": {**owner.selecting, PROTECTED_LABEL: "true"}},
        }
        bodies.append(
            owned_body(
                owner,
                "PodDisruptionBudget",
                budget_name(node_set.metadata.name),
                api_version="policy/v1",
                parts={"spec": budget},
            )
        )
    if spec.ssh and spec.ssh.enabled:
        data = {ssh.SSHD_FILE: ssh.sshd_config(spec.ssh.extra_sshd_config)}
        bodies.append(
            owned_body(
                owner, "ConfigMap", ssh_config_map(node_set.metadata.name), parts={"data": data}
            )
        )
    return tuple(bodies)
