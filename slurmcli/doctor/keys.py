"""Find for `doctor` who can read the keys of Slurm clusters in pods."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from slurmcli.doctor.checks import keys
from slurmcli.doctor.checks.keys import RoleGrant
from slurmruntime.kube import paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import NotFound
from slurmruntime.model.objects import JsonObject

_RBAC = "rbac.authorization.k8s.io/v1"
_CONTROLLERS = "slinky.slurm.net/v1beta1"
_KEYS = ("slurmKeyRef", "jwtKeyRef", "jwtHs256KeyRef")


async def holders(client: KubeClient, *, release: str) -> Mapping[str, Sequence[str]]:
    """Return who can read the keys, by the namespaces of Controllers; our own programs, in `release`, are left out.

    Raises:
        KubeError: something could not be read.
    """
    try:
        controllers = await _items(client, _CONTROLLERS, "controllers")
    except NotFound:  # slurm-operator is not installed
        return {}
    secrets: dict[str, set[str]] = defaultdict(set)
    for controller in controllers:
        secrets[controller["metadata"]["namespace"]].update(_key_secrets(controller["spec"]))
    if not secrets:
        return {}
    clusters = {
        item["metadata"]["name"]: item.get("rules") or ()
        for item in await _items(client, _RBAC, "clusterroles")
    }
    everywhere = [
        _grant(item, clusters) for item in await _items(client, _RBAC, "clusterrolebindings")
    ]
    by_namespace: dict[str, Sequence[str]] = {}
    for namespace, names in sorted(secrets.items()):
        own = {
            item["metadata"]["name"]: item.get("rules") or ()
            for item in await _items(client, _RBAC, "roles", namespace)
        }
        here = [
            _grant(item, clusters if item["roleRef"]["kind"] == "ClusterRole" else own)
            for item in await _items(client, _RBAC, "rolebindings", namespace)
        ]
        by_namespace[namespace] = list(
            keys.holders([*here, *everywhere], secrets=names, ours=(release,))
        )
    return by_namespace


def _key_secrets(spec: JsonObject) -> Iterator[str]:
    return (spec[field]["name"] for field in _KEYS if spec.get(field))


def _grant(binding: JsonObject, roles: Mapping[str, Sequence[JsonObject]]) -> RoleGrant:
    is_clusters = "namespace" not in binding["metadata"]
    role = binding["roleRef"]["name"]
    return RoleGrant(
        binding=f"{'Cluster' if is_clusters else ''}RoleBinding {binding['metadata']['name']}",
        role=role,
        is_clusters=is_clusters,
        subjects=binding.get("subjects") or (),
        rules=roles.get(role, ()),
    )


async def _items(
    client: KubeClient, group: str, plural: str, namespace: str = ""
) -> Sequence[JsonObject]:
    path = paths.collection(group, plural, namespace)
    items: Sequence[JsonObject] = msgspec.json.decode(await client.request("GET", path))["items"]
    return items
