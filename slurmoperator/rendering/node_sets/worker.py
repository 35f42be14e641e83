"""A worker's pod: slurmd, which registers itself with the Controller and names its NodeSet as a feature.

What the pod needs of its node: <https://slurm.schedmd.com/slurmd.html>, `-Z` and `--conf`. The contract with the image is that of
SchedMD's containers: arguments go to the entry point, `POD_CPUS` and `POD_MEMORY` become what slurmd leaves to Slurm.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from slurmoperator.configuration.slurm_conf import SLURMD_PORT
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.labels import APP_LABEL, CLUSTER_LABEL, LOST_JOBS_ANNOTATION, WORKER_APP
from slurmoperator.objects.names import LONGEST_HOST
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.own.profiles import WorkerProfile, profile_faults, profile_of
from slurmoperator.objects.workers import OnNode, WorkerKey, host_name, is_on_nodes
from slurmoperator.rendering import pods, ssh
from slurmoperator.rendering.body import BodyOwner
from slurmoperator.rendering.node_sets import leaving
from slurmoperator.rendering.node_sets.claims import claim_faults, with_claims
from slurmoperator.rendering.overlay import laid_over
from slurmoperator.rendering.site import (
    ControlSite,
    configuration_servers,
    controller_faults,
    workers_domain,
    workers_service,
)
from slurmruntime.values.faults import Fault, Refused, bounded

_SECURITY: Final[Mapping[WorkerProfile, Mapping[str, Any]]] = {
    WorkerProfile.PRIVILEGED: {
        "privileged": True,
        "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
    },
    # What it takes to start jobs as their users, to keep their files and to end them: what Pod Security's level baseline allows.
    WorkerProfile.PLAIN: {
        "privileged": False,
        "allowPrivilegeEscalation": False,
        "capabilities": {
            "drop": ["ALL"],
            "add": ["CHOWN", "DAC_OVERRIDE", "FOWNER", "KILL", "SETGID", "SETUID"],
        },
        "seccompProfile": {"type": "RuntimeDefault"},
    },
}
_OURS: Final = ("hostname", "subdomain", "restartPolicy")
"""What makes it this worker: another value would be another node of Slurm's."""
_HOST_DNS: Final = "ClusterFirstWithHostNet"
"""Without it, Kubernetes gives a pod with the network of its machine that machine's name servers."""
_TOLERATION: Final = {
    "key": "nodeset.slinky.slurm.net/worker",
    "operator": "Exists",
    "effect": "NoExecute",
}


_OF_ONE_ON_EACH_NODE: Final = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
)
"""As the pods of a DaemonSet, but not a cordon: a worker on a cordoned node would keep `kubectl drain` from its end."""


def worker_tolerations(node_set: NodeSetObject) -> tuple[Mapping[str, str], ...]:
    """Return our own part of the workers' tolerations."""
    return (_TOLERATION, *(_OF_ONE_ON_EACH_NODE if is_on_nodes(node_set) else ()))


def worker_pod(
    node_set: NodeSetObject,
    key: WorkerKey,
    controller: ControllerObject | None,
    site: ControlSite,
    *,
    key_step: int = 0,
) -> dict[str, Any] | Refused:
    """Return the pod of a worker without its name and owner, or all that is wrong with its template.

    Args:
        node_set: its NodeSet.
        key: which of its workers.
        controller: the one that the NodeSet names; None if there is none.
        site: what holds for all clusters.
        key_step: of the daemons' key; see `slurmoperator.keys.rings`.
    """
    found = bounded(_faults(node_set, key, controller))
    if found or controller is None or (slurm_key := controller.spec.slurm_key_ref) is None:
        return Refused(found)
    template = node_set.spec.template
    given = (template.spec or {}) if template else {}
    ours = _specification(node_set, key, controller, pods.slurm_key(slurm_key, key_step), site)
    theirs = {field: each for field, each in given.items() if field not in _OURS}
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    return {
        "metadata": pods.template(
            owner, {}, template, labels={CLUSTER_LABEL: controller.metadata.name}
        )["metadata"],
        "spec": with_claims(
            node_set,
            key,
            pinned(key, pods.cared_for(ours, laid_over(ours, theirs), site.priority_class)),
        ),
    }


def ssh_config_map(node_set: str) -> str:
    """Return the name of the ConfigMap with the workers' sshd_config."""
    return f"{node_set}-workers-ssh-config"


def _faults(
    node_set: NodeSetObject, key: WorkerKey, controller: ControllerObject | None
) -> Iterator[Fault]:
    """Find what would make it no worker."""
    yield from controller_faults(node_set.spec.controller_ref.name, controller)
    yield from claim_faults(node_set)
    yield from profile_faults(node_set)
    template = node_set.spec.template
    given = (template.spec or {}) if template else {}
    host = host_name(node_set, key)
    if len(host) > LONGEST_HOST or "." in host:
        yield Fault(
            "spec.template.spec.hostname",
            f"worker {key} would have the host name {host}: expected a prefix without dots, with"
            f" which it has at most {LONGEST_HOST} characters",
        )
    if given.get("restartPolicy") not in (None, "Always"):
        yield Fault(
            "spec.template.spec.restartPolicy",
            f"expected Always, found {given['restartPolicy']}: a slurmd that ends is started again",
        )
    if given.get("subdomain"):
        yield Fault(
            "spec.template.spec.subdomain",
            "leave it out: workers find each other under the Service of their Controller",
        )
    if is_on_host_network(node_set):
        yield from _host_network_faults(node_set, controller)


def is_on_host_network(node_set: NodeSetObject) -> bool:
    """Check whether its workers have the addresses and ports of their machines."""
    template = node_set.spec.template
    return bool(((template.spec or {}) if template else {}).get("hostNetwork"))


def _host_network_faults(
    node_set: NodeSetObject, controller: ControllerObject | None
) -> Iterator[Fault]:
    """Find what does not go with the addresses and ports of machines."""
    spec = node_set.spec
    given = (spec.template.spec or {}) if spec.template else {}
    if profile_of(node_set) is WorkerProfile.PLAIN:
        text = "leave it out with the profile plain: Pod Security's level baseline forbids it"
        yield Fault("spec.template.spec.hostNetwork", text)
    if spec.oversubscribe_node:
        text = f"leave it out with hostNetwork: two workers of a machine cannot both have its port {SLURMD_PORT}"
        yield Fault("spec.oversubscribeNode", text)
    if spec.ssh and spec.ssh.enabled:
        text = (
            f"leave it out with hostNetwork: port {ssh.SSH_PORT} is that of the machine's own sshd"
        )
        yield Fault("spec.ssh.enabled", text)
    policy, is_inside = given.get("dnsPolicy"), controller is None or not controller.spec.external
    if is_inside and policy not in (None, _HOST_DNS, "None"):
        text = (
            f"expected {_HOST_DNS}, or None with a dnsConfig, because of hostNetwork; found {policy}:"
            " with another policy, slurmd does not find its Controller by a name of the cluster"
        )
        yield Fault("spec.template.spec.dnsPolicy", text)


def pinned(key: WorkerKey, specification: dict[str, Any]) -> dict[str, Any]:
    """Return it with the one node that it may go to, as the pods of a DaemonSet have it.

    What the user requires of nodes has been judged already; the node selector is judged once more by the scheduler.
    """
    if not isinstance(key, OnNode):
        return specification
    affinity = specification.get("affinity") or {}
    only = {"key": "metadata.name", "operator": "In", "values": [key.kube_node]}
    required = {"nodeSelectorTerms": [{"matchFields": [only]}]}
    of_nodes = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return {**specification, "affinity": {**affinity, "nodeAffinity": of_nodes}}


def returning(body: Mapping[str, Any], kube_node: str) -> dict[str, Any]:
    """Return a worker's pod that goes to the node it was on before, if what its user requires of nodes holds there, too."""
    spec = body["spec"]
    affinity = spec.get("affinity") or {}
    of_nodes = affinity.get("nodeAffinity") or {}
    required = of_nodes.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    only = {"key": "metadata.name", "operator": "In", "values": [kube_node]}
    theirs: Sequence[Mapping[str, Any]] = required.get("nodeSelectorTerms") or ({},)
    terms = [
        {**their, "matchFields": [*(their.get("matchFields") or ()), only]} for their in theirs
    ]
    held = {
        **of_nodes,
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms},
    }
    return {**body, "spec": {**spec, "affinity": {**affinity, "nodeAffinity": held}}}


def _specification(
    node_set: NodeSetObject,
    key: WorkerKey,
    controller: ControllerObject,
    slurm_key: Mapping[str, Any],
    site: ControlSite,
) -> dict[str, Any]:
    spec = node_set.spec
    image = str((spec.slurmd or {}).get("image") or site.images.slurmd)
    volumes = [
        pods.projected(pods.ETC_VOLUME, 0o600, [slurm_key]),
        dict(pods.LOG),
        dict(pods.MARK),
    ]
    if spec.ssh and spec.ssh.enabled and (sssd := spec.ssh.sssd_conf_ref) is not None:
        volumes.append(ssh.config_volume(ssh_config_map(node_set.metadata.name), (ssh.SSHD_FILE,)))
        volumes.append(ssh.sssd_volume(sssd))
    return {
        **pods.NO_TOKEN,
        "hostname": host_name(node_set, key),
        "subdomain": workers_service(controller.metadata.name),
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": leaving.GRACE_S,
        "dnsConfig": {"searches": [workers_domain(controller, site)]},
        "initContainers": [pods.log_reader(image, "slurmd.log", spec.logfile)],
        "containers": [_slurmd(node_set, key, controller, image)],
        **({"dnsPolicy": _HOST_DNS} if is_on_host_network(node_set) else {}),
        "volumes": volumes,
        "tolerations": [
            dict(worker_toleration) for worker_toleration in worker_tolerations(node_set)
        ],
        **({} if spec.oversubscribe_node else {"affinity": _one_per_node()}),
    }


def _slurmd(
    node_set: NodeSetObject, key: WorkerKey, controller: ControllerObject, image: str
) -> dict[str, Any]:
    ports: list[dict[str, Any]] = [
        {"name": WORKER_APP, "containerPort": SLURMD_PORT, "protocol": "TCP"}
    ]
    # With the network of its machine, a pod has that machine's host name, too: slurmd and preStop are told theirs.
    name = host_name(node_set, key) if is_on_host_network(node_set) else ""
    if name:  # of two on one machine, of whatever NodeSet and namespace, kube-scheduler places one
        ports[0]["hostPort"] = SLURMD_PORT
    mounts = [dict(pods.ETC_MOUNT), dict(pods.LOG_MOUNT), dict(pods.MARK_MOUNT)]
    if node_set.spec.ssh and node_set.spec.ssh.enabled:
        ports.append({"name": "ssh", "containerPort": ssh.SSH_PORT, "protocol": "TCP"})
        mounts += [dict(mount) for mount in ssh.mounts(of_login=False)]
    lost = f"metadata.annotations['{LOST_JOBS_ANNOTATION}']"
    ours = {
        "image": image,
        "args": [
            "-Z",
            *(("-N", name) if name else ()),
            "--conf-server",
            configuration_servers(controller),
            "--conf",
            _quoted(node_set.node_conf),
        ],
        "env": [
            {"name": "POD_CPUS", "valueFrom": _limit("limits.cpu", "1")},
            {"name": "POD_MEMORY", "valueFrom": _limit("limits.memory", "1Mi")},
            {"name": "MAY_HAVE_LOST_JOBS", "valueFrom": {"fieldRef": {"fieldPath": lost}}},
        ],
        "ports": ports,
        "startupProbe": pods.starting(pods.http_probe("/livez", WORKER_APP)),
        "livenessProbe": pods.http_probe("/livez", WORKER_APP, failures=6),
        "readinessProbe": pods.http_probe("/readyz", WORKER_APP),
        "lifecycle": {
            "preStop": {
                "exec": {"command": ["sh", "-c", leaving.script(_grace_s(node_set), node=name)]}
            }
        },
        "securityContext": dict(_SECURITY[profile_of(node_set) or WorkerProfile.PRIVILEGED]),
        "volumeMounts": mounts,
    }
    return pods.container(WORKER_APP, ours, node_set.spec.slurmd)


def _grace_s(node_set: NodeSetObject) -> int:
    template = node_set.spec.template
    given = (template.spec or {}).get("terminationGracePeriodSeconds") if template else None
    return given if isinstance(given, int) and given >= 0 else leaving.GRACE_S


def _quoted(conf: str) -> str:
    """Return it as one word of a shell: entry points put the arguments together anew."""
    escaped = conf.replace("'", "'\"'\"'")
    return f"'{escaped}'"


def _limit(resource: str, divisor: str) -> dict[str, Any]:
    return {
        "resourceFieldRef": {"containerName": WORKER_APP, "resource": resource, "divisor": divisor}
    }


def _one_per_node() -> dict[str, Any]:
    """Return what keeps two workers apart: both would offer the same CPUs to Slurm."""
    selector = {"matchLabels": {APP_LABEL: WORKER_APP}}
    term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
