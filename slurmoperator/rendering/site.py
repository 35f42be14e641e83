"""What rendering needs to know besides the objects, in which namespaces they are served, and how the parts of a cluster find each other."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from slurmoperator.configuration.slurm_conf import SLURMCTLD_PORT
from slurmoperator.objects.controller import ControllerObject
from slurmruntime.values.faults import Fault

SLURM_USER_ID: Final = 401
"""User and group `slurm` of the images."""


ELSEWHERE: Final = "NotServed"
"""Reason of the condition of an object in a namespace that is not served."""


@dataclass(frozen=True, slots=True)
class ServedNamespaces:
    """The namespaces that one operator serves: where it has no rights, it tries nothing."""

    names: AbstractSet[str] = frozenset()
    """Empty: all."""

    def fault(self, namespace: str) -> str:
        """Return why an object of this namespace is left alone; "" if it is not."""
        if not self.names or namespace in self.names:
            return ""
        return (
            f"namespace {namespace} is none of those that slurm-operator serves"
            f" ({', '.join(sorted(self.names))}): have it added to value namespaces of its chart"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmImages:
    """The images of containers whose objects name none."""

    slurmctld: str
    slurmd: str
    slurmdbd: str
    slurmrestd: str
    login: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSite:
    """What holds for the policies of all clusters."""

    operator_namespace: str
    """Where slurm-operator runs, and slurm-bridge by default."""
    others: tuple[Mapping[str, Any], ...] = ()
    """NetworkPolicyPeers that are as trusted as the parts of a cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSite:
    """What holds for all clusters that one operator runs."""

    images: SlurmImages
    domain: str = "cluster.local"
    """The Kubernetes cluster's DNS domain."""
    network: NetworkSite | None = None
    """Of NetworkPolicies; None for none."""
    priority_class: str = ""
    """Of pods that name none; "" for the cluster's default."""
    tls_image: str = ""
    """Has haproxy; "" if that of slurmrestd does."""
    certificate_lifetime: timedelta = timedelta(days=90)
    """Of a certificate that slurmrestd presents."""
    authority_lifetime: timedelta = timedelta(days=3650)
    """Of a CA that signs them."""


def configuration_name(controller: str) -> str:
    """Return the name of the ConfigMap with Slurm's files that are in force."""
    return f"{controller}-config"


def wanted_configuration_name(controller: str) -> str:
    """Return the name of the ConfigMap with those that slurmctld is to try."""
    return f"{controller}-config-wanted"


def slurmdbd_conf_name(accounting: str) -> str:
    """Return the name of the Secret with slurmdbd's file that is in force."""
    return f"{accounting}-accounting"


def wanted_slurmdbd_conf_name(accounting: str) -> str:
    """Return the name of the Secret with the one that slurmdbd is to try."""
    return f"{accounting}-accounting-wanted"


def workers_service(controller: str) -> str:
    """Return the name of the headless Service under which a Controller's workers have names."""
    return f"slurm-workers-{controller}"


def workers_domain(controller: ControllerObject, site: ControlSite) -> str:
    """Return the domain in which workers are found by their short names."""
    meta = controller.metadata
    return f"{workers_service(meta.name)}.{meta.namespace}.svc.{site.domain}"


def configuration_servers(controller: ControllerObject) -> str:
    """Return from where daemons without files get theirs: each slurmctld, with its port."""
    if (address := controller.spec.external_config) and controller.spec.external:
        return f"{address.host}:{address.port}"
    name, namespace = controller.metadata.name, controller.metadata.namespace
    pod = f"{name}-controller"
    return ",".join(
        f"{pod}-{index}.{pod}-internal.{namespace}:{SLURMCTLD_PORT}"
        for index in range(controller.replicas)
    )


def controller_faults(name: str, controller: ControllerObject | None) -> Iterator[Fault]:
    """Find what keeps an object from belonging to its Controller.

    Args:
        name: which Controller it wants.
        controller: that one; None if there is none.
    """
    if controller is None:
        yield Fault("spec.controllerRef.name", f"there is no Controller {name} in this namespace")
    elif controller.spec.slurm_key_ref is None:
        yield Fault(
            "spec.controllerRef.name",
            f"Controller {name} has no spec.slurmKeyRef: expected the Secret with the key of its"
            " daemons, without which nobody can talk to them",
        )
