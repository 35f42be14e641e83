"""Renders a worker's pod: slurmd, which registers itself with the Controller and names its NodeSet as a feature.

slurmd's options: <https://slurm.schedmd.com/slurmd.html>, `-Z` and `--conf`. The contract with the image is that of SchedMD's
containers: arguments go to the entry point, `POD_CPUS` and `POD_MEMORY` limit what slurmd offers to Slurm.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

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
from slurmoperator.rendering.overlay import merge
from slurmoperator.rendering.site import (
    ControlSite,
    configuration_servers,
    controller_faults,
    workers_domain,
    workers_service,
)
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault, Refusal, bounded

_SECURITY: Final[Mapping[WorkerProfile, JsonObject]] = {
    WorkerProfile.PRIVILEGED: {
        "privileged": True,
        "capabilities": {"add": ["BPF", "NET_ADMIN", "SYS_ADMIN", "SYS_NICE"]},
    },
    # What slurmd needs to start jobs as their users, to write their files and to end them; Pod Security's level baseline allows it.
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
_RESERVED_FIELDS: Final = ("hostname", "subdomain", "restartPolicy")
"""Fields that identify the worker: another value would be another node in Slurm."""
_HOST_DNS: Final = "ClusterFirstWithHostNet"
"""Without it, Kubernetes gives a pod with hostNetwork its machine's name servers."""
_TOLERATION: Final = {
    "key": "nodeset.slinky.slurm.net/worker",
    "operator": "Exists",
    "effect": "NoExecute",
}
_DAEMON_SET_TOLERATIONS: Final = (
    {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"},
    {"key": "node.kubernetes.io/disk-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/memory-pressure", "operator": "Exists", "effect": "NoSchedule"},
    {"key": "node.kubernetes.io/pid-pressure", "operator": "Exists", "effect": "NoSchedule"},
)
"""The tolerations of a DaemonSet's pods, except for a cordon: a worker on a cordoned node would block `kubectl drain`."""


def worker_tolerations(node_set: NodeSetObject) -> tuple[Mapping[str, str], ...]:
    """Return the tolerations that we add to the workers."""
    return (_TOLERATION, *(_DAEMON_SET_TOLERATIONS if is_on_nodes(node_set) else ()))


def worker_pod(
    node_set: NodeSetObject,
    key: WorkerKey,
    controller: ControllerObject | None,
    site: ControlSite,
    *,
    key_step: int = 0,
) -> JsonDict:
    """Return the pod of a worker without name and owner, with this rotation step of the daemons' key (`slurmoperator.keys.rings`).

    Raises:
        Refusal: with all that is wrong with its template, or that its Controller does not exist.
    """
    faults = bounded(_faults(node_set, key, controller))
    if faults or controller is None:
        raise Refusal(*faults)
    ours = _specification(node_set, key, controller, site, key_step=key_step)
    theirs = {
        field: value
        for field, value in node_set.spec.pod_spec.items()
        if field not in _RESERVED_FIELDS
    }
    owner = BodyOwner(kind="NodeSet", metadata=node_set.metadata, app=WORKER_APP)
    return {
        "metadata": pods.metadata(
            owner, node_set.spec.template, labels={CLUSTER_LABEL: controller.metadata.name}
        ),
        "spec": with_claims(
            node_set,
            key,
            pin_to_node(
                key, pods.protect_from_eviction(ours, merge(ours, theirs), site.priority_class)
            ),
        ),
    }


def ssh_config_map(node_set: str) -> str:
    """Return the name of the ConfigMap with the workers' sshd_config."""
    return f"{node_set}-workers-ssh-config"


def _faults(
    node_set: NodeSetObject, key: WorkerKey, controller: ControllerObject | None
) -> Iterator[Fault]:
    yield from controller_faults(node_set.spec.controller_ref.name, controller)
    yield from claim_faults(node_set)
    yield from profile_faults(node_set)
    user_spec = node_set.spec.pod_spec
    host = host_name(node_set, key)
    if len(host) > LONGEST_HOST or "." in host:
        yield Fault(
            "spec.template.spec.hostname",
            f"expected a prefix without dots, short enough for host names of at most {LONGEST_HOST}"
            f" characters; worker {key} would have the host name {host}",
        )
    if user_spec.get("restartPolicy") not in (None, "Always"):
        text = (
            f"expected Always, found {user_spec['restartPolicy']}: a slurmd that ends must restart"
        )
        yield Fault("spec.template.spec.restartPolicy", text)
    if user_spec.get("subdomain"):
        text = "leave it out: workers find each other through the Service of their Controller"
        yield Fault("spec.template.spec.subdomain", text)
    if is_on_host_network(node_set):
        yield from _host_network_faults(node_set, controller)


def is_on_host_network(node_set: NodeSetObject) -> bool:
    """Check whether the workers use the network of their machines."""
    return bool(node_set.spec.pod_spec.get("hostNetwork"))


def _host_network_faults(
    node_set: NodeSetObject, controller: ControllerObject | None
) -> Iterator[Fault]:
    spec = node_set.spec
    if profile_of(node_set) is WorkerProfile.PLAIN:
        text = "leave it out: not supported with the profile plain, because Pod Security's level baseline forbids it"
        yield Fault("spec.template.spec.hostNetwork", text)
    if spec.oversubscribe_node:
        text = f"leave it out: not supported with hostNetwork, because two workers on a machine cannot share port {SLURMD_PORT}"
        yield Fault("spec.oversubscribeNode", text)
    if spec.has_ssh:
        text = f"leave it out: not supported with hostNetwork, because the machine's own sshd uses port {ssh.SSH_PORT}"
        yield Fault("spec.ssh.enabled", text)
    policy = spec.pod_spec.get("dnsPolicy")
    is_inside = controller is None or not controller.spec.external
    if is_inside and policy not in (None, _HOST_DNS, "None"):
        text = (
            f"expected {_HOST_DNS}, or None with a dnsConfig, because of hostNetwork; found {policy}:"
            " with another policy, slurmd cannot resolve the name of its Controller"
        )
        yield Fault("spec.template.spec.dnsPolicy", text)


def pin_to_node(key: WorkerKey, specification: JsonDict) -> JsonDict:
    """Restrict a specification to the worker's node, as for the pods of a DaemonSet.

    It replaces the user's required node affinity, which has been checked already; the scheduler checks the node selector again.
    """
    if not isinstance(key, OnNode):
        return specification
    return _on_node(specification, key.kube_node, [{}])


def return_to_node(body: JsonObject, kube_node: str) -> JsonDict:
    """Restrict a worker's pod to its previous node, in addition to the user's required node affinity."""
    node_affinity = (body["spec"].get("affinity") or {}).get("nodeAffinity") or {}
    required = node_affinity.get("requiredDuringSchedulingIgnoredDuringExecution") or {}
    terms = required.get("nodeSelectorTerms") or [{}]
    return {**body, "spec": _on_node(body["spec"], kube_node, terms)}


def _on_node(spec: JsonObject, kube_node: str, terms: Sequence[JsonObject]) -> JsonDict:
    affinity = spec.get("affinity") or {}
    only = {"key": "metadata.name", "operator": "In", "values": [kube_node]}
    required = [{**term, "matchFields": [*(term.get("matchFields") or ()), only]} for term in terms]
    node_affinity = {
        **(affinity.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": required},
    }
    return {**spec, "affinity": {**affinity, "nodeAffinity": node_affinity}}


def _specification(
    node_set: NodeSetObject,
    key: WorkerKey,
    controller: ControllerObject,
    site: ControlSite,
    *,
    key_step: int,
) -> JsonDict:
    spec = node_set.spec
    image = str((spec.slurmd or {}).get("image") or site.images.slurmd)
    slurm_key = pods.slurm_key(controller.spec.slurm_key_ref, key_step)
    volumes = [pods.projected(pods.ETC_VOLUME, 0o600, slurm_key), dict(pods.LOG), dict(pods.MARK)]
    if spec.ssh and spec.has_ssh and (sssd := spec.ssh.sssd_conf_ref) is not None:
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
        "tolerations": [dict(toleration) for toleration in worker_tolerations(node_set)],
        # Two workers on a node would both offer the same CPUs to Slurm.
        **(
            {}
            if spec.oversubscribe_node
            else {"affinity": pods.one_per_node({APP_LABEL: WORKER_APP})}
        ),
    }


def _slurmd(
    node_set: NodeSetObject, key: WorkerKey, controller: ControllerObject, image: str
) -> JsonDict:
    ports: list[JsonDict] = [{"name": WORKER_APP, "containerPort": SLURMD_PORT, "protocol": "TCP"}]
    # With hostNetwork, a pod also has its machine's host name, so slurmd and preStop get the worker's name explicitly.
    name = host_name(node_set, key) if is_on_host_network(node_set) else ""
    if name:  # so kube-scheduler places at most one on a machine, across NodeSets and namespaces
        ports[0]["hostPort"] = SLURMD_PORT
    mounts = [dict(pods.ETC_MOUNT), dict(pods.LOG_MOUNT), dict(pods.MARK_MOUNT)]
    if node_set.spec.has_ssh:
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
        **pods.probes(
            pods.http_probe("/livez", WORKER_APP), pods.http_probe("/readyz", WORKER_APP)
        ),
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
    grace_s = node_set.spec.pod_spec.get("terminationGracePeriodSeconds")
    return grace_s if isinstance(grace_s, int) and grace_s >= 0 else leaving.GRACE_S


def _quoted(options: str) -> str:
    """Quote as one word for a shell: entry points join the arguments again."""
    escaped = options.replace("'", "'\"'\"'")
    return f"'{escaped}'"


def _limit(resource: str, divisor: str) -> JsonDict:
    return {
        "resourceFieldRef": {"containerName": WORKER_APP, "resource": resource, "divisor": divisor}
    }
