"""KubeRay's clusters and jobs (ray.io)."""

from collections.abc import Sequence

from typing_extensions import override

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import membership
from bridge.domain.workloads.kinds import job
from bridge.domain.workloads.kinds.owner import AnyOwner
from bridge.domain.workloads.membership import GetRule, KindRow, Membership
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names

_KINDS = ("RayCluster", "RayJob", "RayService")
_SUBMITTED_BY = "RayJob"
_NODE_TYPE = "ray.io/node-type"


class Ray(AnyOwner):
    """A gang if the root's annotation gives the number of pods."""

    row = KindRow(
        ", ".join(_KINDS),
        "one placeholder per pod; one gang with annotation "
        f"`{names.POD_GROUP_SIZE_ANNOTATION}` on the root owner; "
        "a RayJob's submitter has a placeholder of its own",
        "the annotation; the head counts",
    )
    reads = (GetRule("ray.io", tuple(f"{kind.lower()}s" for kind in _KINDS)),)

    @override
    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim the pods of an annotated root, except a submitter.

        A submitter is created once the cluster runs.
        """
        if not owners or owners[-1].kind not in _KINDS:
            return None
        if owners[-1].kind == _SUBMITTED_BY and owners[0].kind == job.KIND:
            return membership.alone(pod)
        return super().claim(pod, owners)

    def rank(self, pod: Pod, /) -> tuple[int, ...]:
        """Put the head first; workers follow by name."""
        return (0,) if pod.labels.get(_NODE_TYPE) == "head" else ()
