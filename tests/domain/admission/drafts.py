"""A pod as its user wrote it, the same as slurm-bridge hands it over, and the operations between them."""

from dataclasses import replace

from bridge.domain.admission.review import Draft
from bridge.domain.request.rules import Requester
from slurmruntime.model.json_patch import Operation
from slurmruntime.values import names
from tests.make.placing import OUR_TOLERATION, demands

ALICE = Requester(user="alice", groups=("staff",))
ATTRIBUTION = {
    "slurm-bridge.dev/requester": "alice",
    "slurm-bridge.dev/policy-rules": "physics",
}
ORDINARY = Draft(
    namespace="physics",
    requester=ALICE,
    scheduler_name="default-scheduler",
    demand=demands(),
)
HANDED_OVER = replace(
    ORDINARY,
    labels={names.BRIDGED_LABEL: "true"},
    annotations=ATTRIBUTION,
    scheduler_name=names.SCHEDULER_NAME,
    gates=(names.GATE,),
    finalizers=(names.FINALIZER,),
    tolerations=(OUR_TOLERATION,),
)
NAME = {"op": "add", "path": "/spec/schedulerName", "value": "slurm-bridge-scheduler"}
TOLERATION = {"key": "slinky.slurm.net/managed-node", "operator": "Exists"}


def add(path: str, value: object) -> Operation:
    return {"op": "add", "path": path, "value": value}
