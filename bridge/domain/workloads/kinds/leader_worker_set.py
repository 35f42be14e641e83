"""LeaderWorkerSet (leaderworkerset.x-k8s.io)."""

from collections.abc import Sequence

from bridge.domain.model import demand
from bridge.domain.model.demand import Demand, Resources
from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.membership import ExclusiveTopology, GetRule, KindRow, Membership, Size
from slurmruntime.model.objects import JsonObject, KubeObject, Reference
from slurmruntime.values.ids import WorkloadKey

KIND = "LeaderWorkerSet"
_PREFIX = "leaderworkerset.sigs.k8s.io/"
SIZE = f"{_PREFIX}size"
EXCLUSIVE = f"{_PREFIX}exclusive-topology"


class LeaderWorkerSet:
    """Each group, a leader and its workers, is one gang."""

    row = KindRow("LeaderWorkerSet", "one gang per group", f"annotation `{SIZE}`")
    reads = (GetRule("leaderworkerset.x-k8s.io", ("leaderworkersets",)),)
    exclusive = ExclusiveTopology(EXCLUSIVE, frozenset({f"{_PREFIX}group-key"}))

    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim the pods that have a group's labels, even if the set cannot be read."""
        name, group = pod.labels.get(f"{_PREFIX}name"), pod.labels.get(f"{_PREFIX}group-index")
        if not name or not group:
            return None
        root = next((owner for owner in owners if owner.kind == KIND), None)
        return Membership(
            kind=KIND,
            namespace=pod.namespace,
            name=f"{name}-{group}",
            key=WorkloadKey(f"{KIND}/{pod.namespace}/{name}/{group}"),
            by=self,
            rank=counting.rank(pod.labels, f"{_PREFIX}worker-index"),
            declared_by=Reference.to(root) if root else None,
            root=root,
        )

    def size(
        self, _member: Membership, pods: Sequence[Pod], declared: KubeObject | None, /
    ) -> Size:
        """Let the leader start alone if its workers wait for it.

        The same holds if we may not read the set: that cannot deadlock.
        """
        size = counting.annotated(pods, SIZE)
        policy = declared.spec.get("startupPolicy", "LeaderCreated") if declared else ""
        is_exclusive = any(EXCLUSIVE in pod.annotations for pod in pods)
        return size if policy == "LeaderCreated" and not is_exclusive else size._replace(needed=1)

    def slot(self, member: Membership, /) -> int | None:
        """Return the worker index."""
        return member.index

    def later(self, declared: KubeObject | None, /) -> Demand | None:
        """Return the workers' demand, which may differ from the leader's."""
        if declared is None:
            return None
        template = counting.dig(declared.spec, "leaderWorkerTemplate", "workerTemplate", "spec")
        try:
            containers, init_containers = (
                list(map(_resources, template.get(key) or ()))
                for key in ("containers", "initContainers")
            )
            return demand.of(containers, init_containers)
        except (ValueError, TypeError, AttributeError):
            return None  # its pods could not be made either


def _resources(container: JsonObject) -> Resources:
    resources = container.get("resources") or {}
    requests, limits = (
        {name: str(quantity) for name, quantity in (resources.get(part) or {}).items()}
        for part in ("requests", "limits")
    )
    return Resources(requests, limits, container.get("restartPolicy") == "Always")
