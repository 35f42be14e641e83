"""The in-tree PodGroup (scheduling.k8s.io), and what the PodGroups of all APIs have in common."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.membership import GetRule, Kind, KindRow, Membership, Size
from slurmruntime.model.objects import KubeObject, Reference
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import WorkloadKey

KIND = "PodGroup"
_API = "scheduling.k8s.io/v1alpha2"
"""Group and version of the in-tree PodGroup,
<https://github.com/kubernetes/enhancements/issues/4671>."""
_POLICY = "schedulingPolicy"


class InTree:
    """The pod's spec names the group."""

    row = KindRow(
        "PodGroup, in-tree (`spec.schedulingGroup`)",
        "one gang per group and namespace; with policy `basic` one placeholder per pod",
        "at least `minCount`; all that exist when it starts",
    )
    reads = (GetRule("scheduling.k8s.io", ("podgroups", "workloads")),)

    def claim(self, pod: Pod, _owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim a pod that names a group."""
        name = pod.scheduling_group
        return declared(self, pod, name, _API) if name else None

    def is_gang(self, group: KubeObject | None, /) -> bool:
        """Check whether the group's policy is any other than `basic`."""
        return group is None or "basic" not in counting.dig(group.spec, _POLICY)

    def size(self, member: Membership, _pods: Sequence[Pod], group: KubeObject | None, /) -> Size:
        """Return the group's minimum."""
        return at_least(member, group, _POLICY, "gang", "minCount")


def workload_of(group: KubeObject) -> Reference | None:
    """Return the Workload from whose template an in-tree PodGroup was made; None if there is none."""
    name = counting.dig(group.spec, "podGroupTemplateRef", "workload").get("workloadName")
    if not group.api_version.startswith("scheduling.k8s.io/") or not isinstance(name, str):
        return None
    return Reference(
        api_version=group.api_version, kind="Workload", namespace=group.namespace, name=name
    )


class WithMinMember:
    """PodGroups that are custom resources: `spec.minMember` is their minimum."""

    def is_gang(self, _group: KubeObject | None, /) -> bool:
        """Return True: they know no other policy."""
        return True

    def size(self, member: Membership, _pods: Sequence[Pod], group: KubeObject | None, /) -> Size:
        """Return the group's minimum."""
        return at_least(member, group, "minMember")


def declared(kind: Kind, pod: Pod, name: str, api_version: str) -> Membership:
    """Make a pod a member of the group of that name; it holds once the object is confirmed."""
    group = api_version.partition("/")[0]
    return Membership(
        kind=KIND,
        namespace=pod.namespace,
        name=name,
        key=WorkloadKey(f"{KIND}.{group}/{pod.namespace}/{name}"),
        by=kind,
        declared_by=Reference(
            api_version=api_version, kind=KIND, namespace=pod.namespace, name=name
        ),
    )


def at_least(member: Membership, group: KubeObject | None, *path: str) -> Size:
    """Return the minimum at that path of a group's spec."""
    where = f"{KIND} {member.namespace}/{member.name}"
    if group is None:
        fault = Fault(where, "not found: the gang waits until it is created")
        return Size(0, 1, (fault,), is_exact=False)
    *parents, key = path
    faults: list[Fault] = []
    value = counting.dig(group.spec, *parents).get(key)
    least = counting.count(value, f"{where}: spec.{'.'.join(path)}", faults)
    return Size(least, least, tuple(faults), is_exact=False)
