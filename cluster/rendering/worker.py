"""A worker's pod: slurmd, which registers itself with the Controller and names its NodeSet as a feature.

What the pod needs of its node: <https://slurm.schedmd.com/slurmd.html>, `-Z` and `--conf`. The contract with the image is that of
SchedMD's containers: arguments go to the entry point, `POD_CPUS` and `POD_MEMORY` become what slurmd leaves to Slurm.
"""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bridge.domain.faults import Fault, Refused
from cluster.objects.nodeset import NodeSetObject
from cluster.rendering.overlay import laid_over

SLURMD_PORT: Final = 6818
SLURMCTLD_PORT: Final = 6817
_KEY_VOLUME: Final = "slurm-key"
_TOKEN_FREE: Final = {"automountServiceAccountToken": False, "enableServiceLinks": False}
_CAPABILITIES: Final = ("BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE")
_OURS: Final = ("hostname", "subdomain", "restartPolicy")
"""What makes it this worker: another value would be another node of Slurm's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSite:
    """What a worker needs to know of its cluster."""

    controller_host: str
    """Under which workers reach slurmctld."""
    controller_port: int = SLURMCTLD_PORT
    key_secret: str
    """Secret with slurm.key."""
    key_name: str = "slurm.key"
    workers_service: str
    """The headless Service under which workers have names."""
    search_domain: str
    """`SERVICE.NAMESPACE.svc.DOMAIN`: workers find each other by their short names."""
    image: str
    """Where the NodeSet names none."""


def worker_pod(node_set: NodeSetObject, number: str, site: WorkerSite) -> dict[str, Any] | Refused:
    """Return the pod of a worker without its name, labels and owner, or all that is wrong with its template.

    Args:
        node_set: its NodeSet.
        number: as it stands in names.
        site: its cluster.
    """
    spec = node_set.spec
    template = spec.template
    given = (template.spec or {}) if template else {}
    if faults := tuple(_faults(given)):
        return Refused(faults)
    ours = _specification(node_set, number, site)
    merged = laid_over(ours, {key: value for key, value in given.items() if key not in _OURS})
    metadata: dict[str, Any] = {}
    if template is not None and template.metadata is not None:
        metadata = {
            "labels": dict(template.metadata.labels or {}),
            "annotations": dict(template.metadata.annotations or {}),
        }
    return {"metadata": metadata, "spec": merged}


def _faults(given: Mapping[str, Any]) -> list[Fault]:
    """Return what would make it no worker."""
    found = []
    policy = given.get("restartPolicy")
    if policy not in (None, "Always"):
        found.append(
            Fault(
                "spec.template.spec.restartPolicy",
                f"expected Always, found {policy}: a slurmd that ends is started again",
            )
        )
    if given.get("subdomain"):
        found.append(
            Fault(
                "spec.template.spec.subdomain",
                "leave it out: workers find each other under the Service of their Controller",
            )
        )
    return found


def _specification(node_set: NodeSetObject, number: str, site: WorkerSite) -> dict[str, Any]:
    host = f"{node_set.node_prefix}{number}"
    volumes = [
        {
            "name": _KEY_VOLUME,
            "secret": {
                "secretName": site.key_secret,
                "defaultMode": 0o600,
                "items": [{"key": site.key_name, "path": "slurm.key"}],
            },
        },
        {"name": "slurm-log", "emptyDir": {"medium": "Memory"}},
    ]
    return {
        **_TOKEN_FREE,
        "hostname": host,
        "subdomain": site.workers_service,
        "restartPolicy": "Always",
        "dnsConfig": {"searches": [site.search_domain]},
        "containers": [_slurmd(node_set, site)],
        "volumes": volumes,
        **({} if node_set.spec.oversubscribe_node else {"affinity": _one_per_node()}),
    }


def _slurmd(node_set: NodeSetObject, site: WorkerSite) -> dict[str, Any]:
    ours = {
        "name": "slurmd",
        "image": site.image,
        "args": [
            "-Z",
            "--conf-server",
            f"{site.controller_host}:{site.controller_port}",
            "--conf",
            shlex.quote(_conf(node_set)),
        ],
        "env": [
            {"name": "POD_CPUS", "valueFrom": _limit("limits.cpu", "1")},
            {"name": "POD_MEMORY", "valueFrom": _limit("limits.memory", "1Mi")},
        ],
        "ports": [{"name": "slurmd", "containerPort": SLURMD_PORT, "protocol": "TCP"}],
        "startupProbe": _asks("/livez", failures=6, period_s=10),
        "livenessProbe": _asks("/livez", failures=6, period_s=10),
        "readinessProbe": _asks("/readyz", failures=3, period_s=5),
        "securityContext": {"privileged": True, "capabilities": {"add": [*_CAPABILITIES]}},
        "volumeMounts": [
            {"name": _KEY_VOLUME, "mountPath": "/etc/slurm", "readOnly": True},
            {"name": "slurm-log", "mountPath": "/var/log/slurm"},
        ],
    }
    return laid_over(ours, {**(node_set.spec.slurmd or {}), "name": "slurmd"})


def _conf(node_set: NodeSetObject) -> str:
    """Return what slurmd says of its node; the feature puts it into the NodeSet's partitions."""
    said = node_set.spec.extra_conf.split()
    own = [each for each in said if not each.lower().startswith(("feature=", "features="))]
    features = [each.partition("=")[2] for each in said if each not in own]
    return " ".join([f"Features={','.join([node_set.slurm_name, *features])}", *own])


def _limit(resource: str, divisor: str) -> dict[str, Any]:
    return {
        "resourceFieldRef": {"containerName": "slurmd", "resource": resource, "divisor": divisor}
    }


def _asks(path: str, *, failures: int, period_s: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": SLURMD_PORT},
        "failureThreshold": failures,
        "periodSeconds": period_s,
    }


def _one_per_node() -> dict[str, Any]:
    """Return what keeps two workers apart: both would offer the same CPUs to Slurm."""
    selector = {"matchLabels": {"app.kubernetes.io/name": "slurmd"}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
