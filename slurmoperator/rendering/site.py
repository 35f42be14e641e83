"""Settings for rendering: images, namespaces and networks; and the names under which the parts of a cluster find each other."""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from slurmoperator.configuration.slurm_conf import SLURMCTLD_PORT
from slurmoperator.objects.controller import ControllerObject
from slurmruntime.model.objects import JsonObject
from slurmruntime.values import certificates
from slurmruntime.values.faults import Fault

SLURM_USER_ID: Final = 401
"""Uid and gid of `slurm` in the images."""


ELSEWHERE: Final = "NotServed"
"""Condition reason of an object in a namespace that we do not serve."""


@dataclass(frozen=True, slots=True)
class NamespaceScope:
    """The namespaces that this operator serves; elsewhere it has no rights and does nothing."""

    names: AbstractSet[str] = frozenset()
    """Empty for all."""

    def fault(self, namespace: str) -> str:
        """Return why objects in this namespace are ignored; "" if they are not."""
        if not self.names or namespace in self.names:
            return ""
        return (
            f"slurm-operator does not serve namespace {namespace}, only"
            f" {', '.join(sorted(self.names))}: add it to the value namespaces of its chart"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmImages:
    """Default images of the containers."""

    slurmctld: str
    slurmd: str
    slurmdbd: str
    slurmrestd: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSite:
    """Settings of the NetworkPolicies of all clusters."""

    operator_namespace: str
    """Namespace of slurm-operator, and by default of slurm-bridge."""
    others: tuple[JsonObject, ...] = ()
    """NetworkPolicyPeers that are trusted like the parts of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSite:
    """Settings of all clusters of this operator."""

    images: SlurmImages
    domain: str = "cluster.local"
    """The Kubernetes cluster's DNS domain."""
    network: NetworkSite | None = None
    """What NetworkPolicies need; None if there are none."""
    priority_class: str = ""
    """Priority class for pods that name none; "" for the cluster's default."""
    tls_image: str = ""
    """Image with haproxy; "" if the image of slurmrestd has it."""
    certificate_lifetime: timedelta = certificates.LIFETIME
    """Lifetime of slurmrestd's certificates."""
    authority_lifetime: timedelta = certificates.AUTHORITY_LIFETIME
    """Lifetime of the CAs that sign them."""


def configuration_name(controller: str) -> str:
    """Return the name of the ConfigMap with the files of Slurm that are in force."""
    return f"{controller}-config"


def wanted_configuration_name(controller: str) -> str:
    """Return the name of the ConfigMap with the files that slurmctld should try."""
    return f"{controller}-config-wanted"


def slurmdbd_conf_name(accounting: str) -> str:
    """Return the name of the Secret with the slurmdbd.conf that is in force."""
    return f"{accounting}-accounting"


def wanted_slurmdbd_conf_name(accounting: str) -> str:
    """Return the name of the Secret with the slurmdbd.conf that slurmdbd should try."""
    return f"{accounting}-accounting-wanted"


def workers_service(controller: str) -> str:
    """Return the name of the headless Service that gives a Controller's workers DNS names."""
    return f"slurm-workers-{controller}"


def workers_domain(controller: ControllerObject, site: ControlSite) -> str:
    """Return the DNS domain of a Controller's workers."""
    meta = controller.metadata
    return f"{workers_service(meta.name)}.{meta.namespace}.svc.{site.domain}"


def configuration_servers(controller: ControllerObject) -> str:
    """Return the value of `--conf-server`: each slurmctld with its port."""
    if (address := controller.spec.external_config) and controller.spec.external:
        return f"{address.host}:{address.port}"
    name, namespace = controller.metadata.name, controller.metadata.namespace
    pod = f"{name}-controller"
    return ",".join(
        f"{pod}-{index}.{pod}-internal.{namespace}:{SLURMCTLD_PORT}"
        for index in range(controller.replicas)
    )


def controller_faults(name: str, controller: ControllerObject | None) -> Iterator[Fault]:
    """Yield what is wrong with the Controller that an object names; None if it does not exist."""
    if controller is None:
        yield Fault("spec.controllerRef.name", f"there is no Controller {name} in this namespace")
    elif controller.spec.slurm_key_ref is None:
        text = f"Controller {name} has no spec.slurmKeyRef: expected the Secret with the key that its daemons share"
        yield Fault("spec.controllerRef.name", text)
