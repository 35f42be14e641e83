"""Find who, besides the cluster's administrators, can get the keys of a Slurm in pods and so be root in it.

The right to read Secrets in the namespace of a Controller is enough to sign a token for any Slurm user. The right to
run something there, or in an existing pod, is enough to mount the keys or to use those of slurmctld.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from slurmruntime.model.objects import JsonObject

Rule = JsonObject

_READS: Final = frozenset({"get", "list", "watch"})
_MAKES: Final = frozenset({"create", "update", "patch"})
_ENTERS: Final = frozenset({"create", "get"})
"""A websocket begins with a GET."""
_ENTERED: Final = ("pods/exec", "pods/attach")
_RUNNING: Final = {
    "": ("pods", "pods/ephemeralcontainers", "replicationcontrollers"),
    "apps": ("daemonsets", "deployments", "replicasets", "statefulsets"),
    "batch": ("cronjobs", "jobs"),
}
"""What runs a container in a namespace."""
_ADMINISTRATORS: Final = "cluster-admin"
_EVERYBODY: Final = ("system:authenticated", "system:unauthenticated", "system:serviceaccounts")
_SYSTEM: Final = "system:"
_OF_THE_CLUSTER: Final = "kube-system"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleGrant:
    """A RoleBinding or ClusterRoleBinding, with what its role allows."""

    binding: str
    """Its kind and name: `RoleBinding team-a`."""
    role: str
    is_clusters: bool
    """A ClusterRoleBinding."""
    subjects: Sequence[Mapping[str, str]]
    rules: Sequence[Rule]


def holders(
    grants: Iterable[RoleGrant], *, secrets: Iterable[str], ours: Iterable[str]
) -> Iterator[str]:
    """Yield who can get the keys of one namespace, in words.

    Administrators of the whole cluster, the parts of Kubernetes itself, and service accounts of
    namespaces that are ours are left out.
    """
    names, own = frozenset(secrets), {*ours, _OF_THE_CLUSTER}
    for grant in grants:
        if grant.is_clusters and grant.role == _ADMINISTRATORS:
            continue
        if not any(_gives_keys(rule, names) for rule in grant.rules):
            continue
        for subject in grant.subjects:
            if not (grant.is_clusters and _is_system(subject, own)):
                yield f"{_called(subject)} ({grant.binding})"


def _gives_keys(rule: Rule, secrets: frozenset[str]) -> bool:
    groups, verbs = _of(rule, "apiGroups"), _of(rule, "verbs")
    only = _of(rule, "resourceNames")
    if _has(groups, "") and _has(_of(rule, "resources"), "secrets") and (verbs & {*_READS, "*"}):
        return not only or bool(only & secrets)
    if _has(groups, "") and verbs & {*_ENTERS, "*"} and any(_covers(rule, e) for e in _ENTERED):
        return True
    return bool(verbs & {*_MAKES, "*"}) and any(
        _has(groups, group) and any(_covers(rule, resource) for resource in resources)
        for group, resources in _RUNNING.items()
    )


def _covers(rule: Rule, resource: str) -> bool:
    resources = _of(rule, "resources")
    subresource = resource.partition("/")[2]
    return _has(resources, resource) or bool(subresource and f"*/{subresource}" in resources)


def _of(rule: Rule, part: str) -> frozenset[str]:
    return frozenset(rule.get(part) or ())


def _has(entries: frozenset[str], wanted: str) -> bool:
    return wanted in entries or "*" in entries


def _is_system(subject: Mapping[str, str], own: set[str]) -> bool:
    if subject.get("kind") == "ServiceAccount":
        return subject.get("namespace", "") in own
    name = subject.get("name", "")
    return name.startswith(_SYSTEM) and not name.startswith(_EVERYBODY)


def _called(subject: Mapping[str, str]) -> str:
    namespace = f"{subject['namespace']}/" if subject.get("namespace") else ""
    return f"{subject.get('kind', '')} {namespace}{subject.get('name', '')}"
