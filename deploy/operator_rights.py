"""The rights of slurm-operator: what its program asks of the API server, and nothing more.

What it reads of all namespaces is no secret: its own kinds, workloads, pods and nodes. What it writes, and the Secrets and
ConfigMaps that it reads, can be limited to the namespaces that it serves.
Secrets have no names here: those with keys are named by the objects, and RBAC cannot limit whom one creates by name.
"""

from collections.abc import Sequence
from typing import Any, Final

from slurmoperator.daemons.part import PART_KINDS, WORKLOADS
from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.parts import GROUP
from slurmruntime.kube.apply.writes import PLURALS

NAME: Final = "slurm-bridge-operator"
SERVING: Final = f"{NAME}-serving"
"""The role that can be limited to namespaces."""
_API: Final = "rbac.authorization.k8s.io/v1"


def rights(namespace: str, served: Sequence[str] = ()) -> tuple[dict[str, Any], ...]:
    """Return a service account for the program, and its roles.

    Args:
        namespace: where the program runs, and has its lease.
        served: the namespaces that it serves; empty: all.
    """
    return (*common(namespace), *serving(namespace, served))


def common(namespace: str) -> tuple[dict[str, Any], ...]:
    """Return all but the bindings of what can be limited."""
    return (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": NAME, "namespace": namespace},
        },
        {
            "apiVersion": _API,
            "kind": "ClusterRole",
            "metadata": {"name": NAME},
            "rules": [*_objects(), *_watched(), *_others()],
        },
        {
            "apiVersion": _API,
            "kind": "ClusterRole",
            "metadata": {"name": SERVING},
            "rules": [*_applied(), *_made()],
        },
        _binding("ClusterRole", {"name": NAME}, namespace),
        {
            "apiVersion": _API,
            "kind": "Role",
            "metadata": {"name": NAME, "namespace": namespace},
            "rules": [
                _rule("coordination.k8s.io", ["leases"], ["create"]),
                {
                    **_rule("coordination.k8s.io", ["leases"], ["get", "update"]),
                    "resourceNames": [NAME],
                },
            ],
        },
        _binding("Role", {"name": NAME, "namespace": namespace}, namespace),
    )


def serving(namespace: str, served: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Return the bindings of what can be limited: one for the cluster, or one in each namespace."""
    if not served:
        return (_binding("ClusterRole", {"name": SERVING}, namespace, role=SERVING),)
    return tuple(
        _binding("Role", {"name": SERVING, "namespace": each}, namespace, "ClusterRole", SERVING)
        for each in served
    )


def _objects() -> list[dict[str, Any]]:
    parts = sorted(each.plural for each in PART_KINDS.values())
    held = sorted(each.plural for each in PART_KINDS.values() if each.finalizer)
    return [
        _rule(GROUP, [*parts, "nodesets"], ["list", "watch"]),
        _rule(GROUP, [*(f"{part}/status" for part in parts), "nodesets/status"], ["patch"]),
        _rule(
            GROUP, [*held, "nodesets"], ["patch"]
        ),  # finalizers, where they are not served any more, too
        _rule(slurm_cluster.GROUP, [slurm_cluster.PLURAL], ["list", "watch", "patch"]),
        _rule(slurm_cluster.GROUP, [f"{slurm_cluster.PLURAL}/status"], ["patch"]),
    ]


def _applied() -> list[dict[str, Any]]:
    by_group: dict[str, list[str]] = {}
    for (api_version, _), plural in PLURALS.items():
        by_group.setdefault(api_version.rpartition("/")[0], []).append(plural)
    return [
        _rule(group, sorted(plurals), ["get", "create", "patch", "delete"])
        for group, plurals in sorted(by_group.items())
    ]


def _watched() -> list[dict[str, Any]]:
    return [
        _rule("apps", sorted(PLURALS["apps/v1", kind] for kind in WORKLOADS), ["list", "watch"]),
        _rule("", ["pods"], ["list", "watch"]),
    ]


def _made() -> list[dict[str, Any]]:
    return [
        _rule("", ["pods"], ["get", "create", "patch", "delete"]),
        _rule("", ["pods/status"], ["patch"]),
        _rule("", ["pods/log"], ["get"]),
        _rule("events.k8s.io", ["events"], ["create"]),
        _rule("", ["persistentvolumeclaims"], ["get", "list", "create", "patch", "delete"]),
        _rule("apps", ["controllerrevisions"], ["get", "list", "create", "patch", "delete"]),
    ]


def _others() -> list[dict[str, Any]]:
    return [
        _rule("", ["nodes"], ["list", "watch"]),
        {**_rule("", ["namespaces"], ["get"]), "resourceNames": ["kube-system"]},
        _rule("coordination.k8s.io", ["leases"], ["list"]),  # whether there is another operator
        _rule("admissionregistration.k8s.io", ["validatingwebhookconfigurations"], ["list"]),
    ]


def _rule(group: str, resources: list[str], verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": resources, "verbs": verbs}


def _binding(
    kind: str, metadata: dict[str, Any], namespace: str, of: str = "", role: str = NAME
) -> dict[str, Any]:
    """Bind the program's account to a role; `of`: the role's kind, if it is not the binding's."""
    return {
        "apiVersion": _API,
        "kind": f"{kind}Binding",
        "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": of or kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": NAME, "namespace": namespace}],
    }
