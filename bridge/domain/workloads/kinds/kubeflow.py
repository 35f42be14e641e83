"""Jobs of Kubeflow's MPI and training operators (kubeflow.org).

A TrainJob, of Kubeflow's trainer, creates a JobSet.
"""

from collections.abc import Sequence

from typing_extensions import override

from bridge.domain.model.pods import Pod
from bridge.domain.workloads import counting
from bridge.domain.workloads.kinds.owner import AnyOwner
from bridge.domain.workloads.membership import GetRule, KindRow, Membership
from slurmruntime.model.objects import KubeObject
from slurmruntime.values import names

_KINDS = ("JAXJob", "MPIJob", "PaddleJob", "PyTorchJob", "TFJob", "XGBoostJob")
_PREFIX = "training.kubeflow.org/"
_ROLES = ("launcher", "master", "chief", "ps", "worker", "evaluator")
"""Replica types; first those that others connect to. Each counts its own replicas from 0."""


class Kubeflow(AnyOwner):
    """A gang if the job's annotation gives the number of pods."""

    row = KindRow(
        ", ".join(_KINDS),
        "one placeholder per pod; one gang with annotation "
        f"`{names.POD_GROUP_SIZE_ANNOTATION}` on the job",
        "the annotation; an MPIJob's launcher counts",
    )
    reads = (
        GetRule("kubeflow.org", tuple(f"{kind.lower()}s" for kind in _KINDS)),
        GetRule("trainer.kubeflow.org", ("trainjobs",)),
    )

    @override
    def claim(self, pod: Pod, owners: Sequence[KubeObject], /) -> Membership | None:
        """Claim the pods of an annotated job."""
        is_ours = bool(owners) and owners[-1].kind in _KINDS
        return super().claim(pod, owners) if is_ours else None

    def rank(self, pod: Pod, /) -> tuple[int, ...]:
        """Return the role's place, and the number within the role.

        The MPI operator gives roles instead of types, and does not number a launcher that is not a
        worker too.
        """
        kind = pod.labels.get(f"{_PREFIX}replica-type") or pod.labels.get(f"{_PREFIX}job-role", "")
        role = kind.lower()
        number = counting.rank(pod.labels, f"{_PREFIX}replica-index") or (0,) * (role == "launcher")
        return (_ROLES.index(role), *number) if number and role in _ROLES else ()
