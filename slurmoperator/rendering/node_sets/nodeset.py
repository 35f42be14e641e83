"""What a NodeSet has in the API server besides its pods, and the templates of these."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import PROTECTED_LABEL, WORKER_APP
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.workers import WorkerKey
from slurmoperator.rendering import ssh
from slurmoperator.rendering.body import Body, BodyOwner, made
from slurmoperator.rendering.node_sets.worker import ssh_config_map, worker_pod
from slurmoperator.rendering.site import ControlSite
from slurmruntime.values.faults import Refused

ALL_OF_THEM: Final = 2**31 - 1
"""As `minAvailable`: no protected worker may be evicted, however many there are."""


def worker_templates(
    controllers: Callable[[str, str], ControllerObject | None], site: ControlSite
) -> Callable[[NodeSetObject, WorkerKey, int], Mapping[str, Any] | Refused]:
    """Return what makes the pods of workers, as the controller of NodeSets wants it.

    Args:
        controllers: gives the Controller of a namespace and a name; None if there is none.
        site: what holds for all clusters.
    """

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
    """Return what belongs to a NodeSet besides its pods.

    Args:
        node_set: with what its users want.
        min_available: how many protected workers evictions leave. A whole number asks for no scale of its pods' owner, which
            would allow evictions while a NodeSet is scaled in.
    """
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    spec = node_set.spec
    found = []
    if spec.workload_disruption_protection:
        budget = {
            "minAvailable": min_available,
            "selector": {"matchLabels": {**owner.selecting, PROTECTED_LABEL: "true"}},
        }
        found.append(
            made(
                owner,
                "PodDisruptionBudget",
                budget_name(node_set.metadata.name),
                api_version="policy/v1",
                parts={"spec": budget},
            )
        )
    if spec.ssh and spec.ssh.enabled:
        data = {ssh.SSHD_FILE: ssh.sshd_config(spec.ssh.extra_sshd_config)}
        found.append(
            made(owner, "ConfigMap", ssh_config_map(node_set.metadata.name), parts={"data": data})
        )
    return tuple(found)
