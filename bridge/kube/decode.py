"""Decode Kubernetes JSON into domain values, or raise `Malformed` with the object and the path.

No other module reads Kubernetes JSON.
"""

from collections.abc import Iterable
from functools import lru_cache

import msgspec

from bridge.domain.model import demand, pods
from bridge.domain.model.demand import Demand
from bridge.kube import bounds, containers, odd_numbers, wire
from slurmruntime.kube import paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.resource import Json, ObjectVersion, ResourceKind, owner, read
from slurmruntime.model.affinity import NodeTerm, Requirement, Toleration
from slurmruntime.values import numbers
from slurmruntime.values.ids import KubeNode, PodUid
from slurmruntime.values.part import is_absent

MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
"""Set by the kubelet on the mirror pod of a static pod."""

ANY_IP = "0.0.0.0"  # noqa: S104  # not a listener: a host port without an IP is taken on all IPs
_MOST_CONDITIONS = 200
"""Conditions of a pod; Kubernetes and we write ten."""

_pod = msgspec.json.Decoder(wire.PodBody)
_bound_pod = msgspec.json.Decoder(wire.BoundPod)


def pod(body: Json) -> pods.Pod:
    """Decode one pod, with everything that decisions about it need."""
    return read("Pod", _pod, _to_pod, body)


def bound_pod(body: Json) -> pods.BoundPod:
    """Decode one bound pod, with only what the accounting of its node needs."""
    return read("Pod", _bound_pod, _to_bound_pod, body)


PODS = ResourceKind(
    path="/api/v1/pods",
    read=pod,
    identify=lambda p: ObjectVersion(p.uid, p.resource_version, p.full_name),
    called="pod",
    api_kind="Pod",
)
"""Whole pods, by uid; the reflector selects `spec.schedulerName=slurm-bridge-scheduler`."""
BOUND_PODS = ResourceKind(
    path="/api/v1/pods",
    read=bound_pod,
    identify=lambda p: ObjectVersion(p.uid, p.resource_version, f"{p.namespace}/{p.name}"),
    called="other_pod",
)
"""Bound pods, reduced to what the accounting of nodes needs, by uid.

Select them with `spec.nodeName!=`, and exclude our pods: `PODS` has them.
"""


def _to_pod(wired: wire.PodBody) -> pods.Pod:
    meta, spec, status = wired.metadata, wired.spec, wired.status
    terms, tolerations = bounds.terms(spec.affinity), bounds.tolerations(spec)
    sizes = bounds.sizes(meta, terms, tolerations, spec)
    return pods.Pod(
        uid=PodUid(meta.uid),
        namespace=meta.namespace,
        name=meta.name,
        resource_version=meta.resource_version,
        created_at=numbers.moment(meta.creation_timestamp),
        labels=bounds.labels(meta.labels),
        annotations=bounds.annotations(meta.annotations),
        owner=owner(meta),
        gates=tuple([gate.name for gate in spec.scheduling_gates]),
        finalizers=tuple(meta.finalizers),
        scheduler_name=spec.scheduler_name,
        priority_class=spec.priority_class_name,
        scheduling_group=spec.scheduling_group.pod_group_name if spec.scheduling_group else "",
        demand=_demand(spec),
        node_selector=spec.node_selector,
        node_terms=node_terms(terms) if bounds.is_readable(sizes) else (NodeTerm(),),
        has_affinity=spec.affinity is not None,
        has_node_affinity=spec.affinity is not None and not is_absent(spec.affinity.node_affinity),
        tolerations=_tolerations(bounds.first(tolerations, "tolerations")),
        host_ports=bounds.first(_host_ports(spec), "host_ports"),
        claims=bounds.claims(spec),
        resource_claims=bounds.resource_claims(spec, status),
        kube_node=KubeNode(spec.node_name) if spec.node_name else None,
        phase=status.phase,
        reason=status.reason,
        start_time=odd_numbers.moment(status.start_time),
        deadline_s=odd_numbers.seconds(spec.active_deadline_seconds),
        grace_s=numbers.seconds(spec.termination_grace_period_seconds),
        restart_policy=spec.restart_policy,
        deletion_at=odd_numbers.moment(meta.deletion_timestamp),
        deletion_grace_s=numbers.seconds(meta.deletion_grace_period_seconds),
        containers=containers.read(spec, status),
        conditions=tuple(
            [
                pods.Condition(type=c.type, status=c.status, reason=c.reason, message=c.message)
                for c in status.conditions[:_MOST_CONDITIONS]
            ]
        ),
        sizes=sizes,
        oddities=tuple(odd_numbers.of(meta, spec)),
    )


def _to_bound_pod(wired: wire.BoundPod) -> pods.BoundPod:
    meta, spec = wired.metadata, wired.spec
    controller = owner(meta)
    return pods.BoundPod(
        uid=PodUid(meta.uid),
        namespace=meta.namespace,
        name=meta.name,
        resource_version=meta.resource_version,
        kube_node=KubeNode(spec.node_name),
        owner=controller,
        demand=_demand(spec),
        host_ports=_host_ports(spec),
        is_deleting=meta.deletion_timestamp is not None,
        is_terminal=wired.status.phase in (pods.Phase.SUCCEEDED, pods.Phase.FAILED),
        is_of_the_node=MIRROR_POD_ANNOTATION in meta.annotations
        or (
            controller is not None
            and controller.kind == "DaemonSet"
            and controller.api_version == "apps/v1"
        ),
    )


def _demand(spec: wire.PodSpec | wire.BoundPodSpec) -> Demand:
    return _demand_of(
        tuple([(*_written(c.resources), False) for c in spec.containers]),
        tuple([(*_written(c.resources), containers.is_sidecar(c)) for c in spec.init_containers]),
        tuple(spec.overhead.items()),
        (*_written(spec.resources), False) if spec.resources else None,
    )


_Amounts = tuple[tuple[str, str], ...]
_Container = tuple[_Amounts, _Amounts, bool]


def _written(resources: wire.Resources) -> tuple[_Amounts, _Amounts]:
    return tuple(resources.requests.items()), tuple(resources.limits.items())


@lru_cache(maxsize=1024)
def _demand_of(
    containers: tuple[_Container, ...],
    init_containers: tuple[_Container, ...],
    overhead: _Amounts,
    pod: _Container | None,
) -> Demand:
    """Return a pod's demand; cached because most pod events repeat a specification."""
    return demand.of(
        map(_resources, containers),
        map(_resources, init_containers),
        dict(overhead),
        _resources(pod) if pod else None,
    )


def _resources(container: _Container) -> demand.Resources:
    requests, limits, is_sidecar = container
    return demand.Resources(dict(requests), dict(limits), is_sidecar)


def node_terms(terms: Iterable[wire.NodeSelectorTerm]) -> tuple[NodeTerm, ...]:
    """Decode alternatives: a pod's required node affinity, a volume's nodes."""
    return tuple(
        NodeTerm(
            match_labels=_requirements(term.match_expressions),
            match_fields=_requirements(term.match_fields),
        )
        for term in terms
    )


def _requirements(wired: Iterable[wire.Requirement]) -> tuple[Requirement, ...]:
    return tuple(Requirement(key=r.key, operator=r.operator, values=tuple(r.values)) for r in wired)


def _tolerations(wired: Iterable[wire.Toleration]) -> tuple[Toleration, ...]:
    return tuple(
        [Toleration(key=t.key, operator=t.operator, value=t.value, effect=t.effect) for t in wired]
    )


def _host_ports(spec: wire.PodSpec | wire.BoundPodSpec) -> tuple[tuple[str, int, str], ...]:
    """Return the node's ports a running pod takes, counted as kube-scheduler's NodePorts does."""
    return tuple(
        [
            (port.protocol, port.host_port, port.host_ip or ANY_IP)
            for container in (
                *filter(containers.is_sidecar, spec.init_containers),
                *spec.containers,
            )
            for port in container.ports
            if port.host_port
        ]
    )


async def get_pod(client: KubeClient, namespace: str, name: str) -> pods.Pod:
    """Return the pod that has this name now; the caller has to compare the uid.

    Raises NotFound if there is no pod of that name.
    """
    return pod(await client.request("GET", paths.pod(namespace, name)))
