"""A single pod: anything that no other kind claims, such as the pods of a Deployment."""

from collections.abc import Sequence

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import membership
from bridge.domain.workloads.membership import GetRule, KindRow, Membership
from slurmruntime.model.objects import KubeObject


class SinglePod:
    """One placeholder for each pod. Its owners are read for their annotations."""

    row = KindRow(
        "Pod; pods of a Deployment, StatefulSet or an owner that we do not know or may not read",
        "one placeholder per pod",
        "itself",
    )
    reads = (GetRule("apps", ("deployments", "replicasets", "statefulsets")),)

    def claim(self, pod: Pod, _owners: Sequence[KubeObject], /) -> Membership:
        """Claim every pod."""
        return membership.alone(pod)
