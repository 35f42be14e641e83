"""Lists what we may have created for an object and no longer want, by name, so that other objects are never touched.

Names that any released version has used stay in this table. A Secret with Slurm's keys and a claim are never listed: they outlive
the object that they were created for.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from slurmoperator.rendering.access.monitoring import SERVICE_MONITOR
from slurmoperator.rendering.body import identity
from slurmoperator.rendering.node_sets.nodeset import budget_name
from slurmoperator.rendering.node_sets.worker import ssh_config_map
from slurmoperator.rendering.site import (
    configuration_name,
    slurmdbd_conf_name,
    wanted_configuration_name,
    wanted_slurmdbd_conf_name,
    workers_service,
)
from slurmruntime.crd import restapis
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.objects import JsonObject

_POLICY: Final = ("networking.k8s.io/v1", "NetworkPolicy")


def leftovers(
    kind: str, metadata: ObjectMetadata, bodies: Iterable[JsonObject]
) -> tuple[JsonObject, ...]:
    """Return apiVersion, kind, name and namespace of everything to delete: what an owner may have beside the bodies it should have."""
    wanted = {(body["apiVersion"], body["kind"], body["metadata"]["name"]) for body in bodies}
    return tuple(
        identity(body_kind, metadata.namespace, name, api_version=api_version)
        for api_version, body_kind, name in possible_objects(kind, metadata.name)
        if (api_version, body_kind, name) not in wanted
    )


def possible_objects(kind: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield apiVersion, kind and name of everything that we may create for an object, users before what they use."""
    match kind:
        case "Controller":
            yield *SERVICE_MONITOR, f"{name}-controller"
            yield "apps/v1", "StatefulSet", f"{name}-controller"
            yield "v1", "Service", f"{name}-controller"
            yield "v1", "Service", f"{name}-controller-internal"
            yield "v1", "Service", workers_service(name)
            yield "v1", "ConfigMap", wanted_configuration_name(name)
            yield "v1", "ConfigMap", configuration_name(name)
            yield *_POLICY, f"{name}-controller"
            yield *_POLICY, workers_service(name)
        case "Accounting":
            yield "apps/v1", "StatefulSet", f"{name}-accounting"
            yield "v1", "Service", f"{name}-accounting"
            yield "v1", "Secret", wanted_slurmdbd_conf_name(name)
            yield "v1", "Secret", slurmdbd_conf_name(name)
            yield *_POLICY, f"{name}-accounting"
        case "RestApi":
            yield "apps/v1", "Deployment", f"{name}-restapi"
            yield "v1", "Service", f"{name}-restapi"
            yield "v1", "Secret", restapis.tls_name(name)
            yield "v1", "ConfigMap", restapis.tls_name(name)
            yield *_POLICY, restapis.service_name(name)
        case "LoginSet":
            yield "apps/v1", "Deployment", name
            yield "v1", "Service", name
            yield "v1", "ConfigMap", f"{name}-ssh-config"
            yield *_POLICY, name
        case "NodeSet":
            yield "policy/v1", "PodDisruptionBudget", budget_name(name)
            yield "v1", "ConfigMap", ssh_config_map(name)
        case _:
            return
