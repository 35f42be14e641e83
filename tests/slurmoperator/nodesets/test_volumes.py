"""Volumes of workers: there before them, used again by their numbers, and never deleted while a worker may need them."""

from functools import partial
from typing import Any

import pytest

from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

TEMPLATE = {
    "metadata": {"name": "data", "labels": {"example.test/tier": "fast"}},
    "spec": {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    },
}
GOES = {"whenDeleted": "Delete", "whenScaled": "Retain"}
SCALES = {"whenDeleted": "Retain", "whenScaled": "Delete"}
MARK = "slurm-bridge.dev/unneeded-since"
LATER_S = 3 * SETTLED_S
"""Longer than a worker takes to go, and then its volume."""


def with_volumes(**changes: Any) -> dict[str, Any]:
    return node_set(**{"replicas": 2, "volumeClaimTemplates": [TEMPLATE], **changes})


def uids(operator: Operator) -> dict[str, str]:
    found = operator.api.of("PersistentVolumeClaim")
    return {name: each["metadata"]["uid"] for name, each in found.items()}


def marks(operator: Operator) -> set[str]:
    """The claims of which it is said that nobody needs them."""
    found = operator.api.of("PersistentVolumeClaim").items()
    return {name for name, each in found if MARK in each["metadata"]["annotations"]}


def delete(operator: Operator) -> None:
    meta = operator.api.of("NodeSet")["gpu"]["metadata"]
    operator.api.change(
        "NodeSet", "gpu", metadata={**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}
    )


def test_claims_are_there_before_their_worker() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes())
        await operator.lead(for_s=SETTLED_S)

        assert ["data-gpu-0", "data-gpu-1"] == sorted(uids(operator))
        made = [w.rsplit("/", 1)[1] for w in operator.trouble.writes if w.startswith("POST")]
        assert made.index("persistentvolumeclaims") < made.index("pods")
        labels = operator.api.of("PersistentVolumeClaim")["data-gpu-0"]["metadata"]["labels"]
        assert ("fast", "gpu") == (
            labels["example.test/tier"],
            labels["app.kubernetes.io/instance"],
        )

    run(main)


def test_scaling_in_and_an_update_cost_no_volume() -> None:
    """SchedMD's operator deletes volumes of workers that are only updated or cordoned (D16)."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=GOES))
        await operator.lead(for_s=SETTLED_S)
        before = uids(operator)
        for spec in ({"replicas": 1}, {"replicas": 2}, {"slurmd": {"image": "slurmd:2"}}):
            operator.api.change("NodeSet", "gpu", spec=spec)
            await operator.lead(for_s=3 * SETTLED_S)
            assert before == uids(operator)
        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)

    run(main)


def test_the_volume_of_a_worker_that_was_scaled_in_goes_after_a_while_if_that_is_wanted() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=SCALES))
        await operator.lead(for_s=SETTLED_S)
        before = uids(operator)
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == names_of(operator.api.pods)
        assert ({"data-gpu-1"}, before) == (marks(operator), uids(operator))
        await operator.lead(for_s=2 * SETTLED_S)
        assert {"data-gpu-0": before["data-gpu-0"]} == uids(operator)

        operator.api.change("NodeSet", "gpu", spec={"replicas": 2})
        await operator.lead(for_s=SETTLED_S)
        after = uids(operator)
        assert before["data-gpu-0"] == after["data-gpu-0"]
        assert before["data-gpu-1"] != after["data-gpu-1"]
        count = len(operator.trouble.writes)
        await operator.lead(for_s=300)
        assert [] == operator.trouble.writes[count:]

    run(main)


def test_who_changes_their_mind_at_once_keeps_the_volume() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=SCALES))
        await operator.lead(for_s=SETTLED_S)
        before = uids(operator)
        scale = partial(operator.api.change, "NodeSet", "gpu")
        await operator.lead(
            for_s=2 * LATER_S,
            then={
                1.0: lambda: scale(spec={"replicas": 1}),
                45.0: lambda: scale(spec={"replicas": 2}),
            },
        )
        assert (set(), before) == (marks(operator), uids(operator))
        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)

    run(main)


def test_no_volume_goes_while_its_worker_is_only_updated_evicted_cordoned_or_busy() -> None:
    """SchedMD's operator takes a cordon for a scale-in (D16)."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=SCALES))
        await operator.lead(for_s=SETTLED_S)
        before = uids(operator)
        operator.api.change("NodeSet", "gpu", spec={"slurmd": {"image": "slurmd:2"}})
        await operator.lead(for_s=LATER_S)
        meta = operator.api.pods["gpu-1"]["metadata"]
        cordoned = {"nodeset.slinky.slurm.net/pod-cordon": "true"}
        operator.api.change("Pod", "gpu-1", metadata={**meta, "annotations": cordoned})
        await operator.lead(for_s=LATER_S)
        operator.api.remove("Pod", "gpu-1")
        await operator.lead(for_s=LATER_S, kubelet=False)
        await operator.lead(for_s=SETTLED_S)
        for number in (0, 1):
            operator.slurm.jobs[number + 1] = job(number + 1, f"gpu-{number}")
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=LATER_S)
        assert (set(), before) == (marks(operator), uids(operator))

    run(main)


def test_what_somebody_has_changed_since_or_made_by_hand_does_not_go() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=SCALES))
        await operator.lead(for_s=SETTLED_S)
        claims = operator.api.of("PersistentVolumeClaim")
        path = next(stored for stored in operator.api.objects if stored.endswith("/data-gpu-1"))
        own = {**claims["data-gpu-1"]["metadata"], "name": "data-gpu-7", "annotations": {"a": "b"}}
        operator.api._store(
            path.replace("gpu-1", "gpu-7"), {**claims["data-gpu-1"], "metadata": own}
        )
        operator.api.change("NodeSet", "gpu", spec={"scalingMode": "DaemonSet"})
        await operator.lead(for_s=LATER_S)
        assert ["data-gpu-0", "data-gpu-1", "data-gpu-7"] == sorted(uids(operator))
        operator.api.change("NodeSet", "gpu", spec={"scalingMode": "StatefulSet", "replicas": 1})
        await operator.lead(for_s=LATER_S)
        assert ["data-gpu-0", "data-gpu-7"] == sorted(uids(operator))

    run(main)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 19))
def test_whatever_write_fails_only_the_volume_that_nobody_needs_goes(fault: Fault, at: int) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=SCALES))
        await operator.lead(for_s=2 * SETTLED_S)
        before = uids(operator)
        operator.slurm.jobs[1] = job(1, "gpu-0")
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=2 * LATER_S)
        assert {"data-gpu-0": before["data-gpu-0"]} == uids(operator)
        assert ["gpu-0"] == names_of(operator.api.pods)
        assert "RUNNING" == operator.slurm.jobs[1].state
        assert len(operator.trouble.writes) >= 18, "there are writes at which none failed"

    run(main)


@pytest.mark.parametrize(
    ("policy", "left"),
    [(None, 2), ({"whenDeleted": "Retain", "whenScaled": "Retain"}, 2), (GOES, 0)],
)
def test_a_deleted_node_set_leaves_its_volumes_unless_it_says_otherwise(
    policy: Any, left: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=policy))
        await operator.lead(for_s=SETTLED_S)
        delete(operator)
        await operator.lead(for_s=2 * SETTLED_S)
        assert {} == operator.api.of("NodeSet")
        assert left == len(uids(operator))

    run(main)


def test_a_new_node_set_of_the_name_uses_what_was_left_and_deletes_only_what_it_has_used() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(with_volumes())
        await operator.lead(for_s=SETTLED_S)
        delete(operator)
        await operator.lead(for_s=2 * SETTLED_S)
        for kind in ("PodDisruptionBudget", "ConfigMap", "ControllerRevision"):
            for name in operator.api.of(kind):
                operator.api.remove(kind, name)  # as the garbage collector does
        before = uids(operator)
        again = with_volumes(replicas=1, persistentVolumeClaimRetentionPolicy=GOES)
        again["metadata"]["uid"] = "uid-again"
        operator.api.put(again)
        await operator.lead(for_s=SETTLED_S)
        assert before == uids(operator)
        delete(operator)
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["data-gpu-1"] == sorted(uids(operator))

    run(main)


def test_no_two_node_sets_share_a_volume_whose_names_run_together() -> None:
    """Template data of NodeSet big-gpu and template data-big of NodeSet gpu make the same name."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        first = node_set("big-gpu", replicas=1, volumeClaimTemplates=[TEMPLATE])
        operator.api.put(first)
        await operator.lead(for_s=SETTLED_S)
        before = operator.api.of("PersistentVolumeClaim")["data-big-gpu-0"]["metadata"]
        other = {**TEMPLATE, "metadata": {"name": "data-big"}}
        operator.api.put(node_set("gpu", replicas=1, volumeClaimTemplates=[other]))
        await operator.lead(for_s=2 * SETTLED_S)

        assert ["big-gpu-0"] == names_of(operator.api.pods)
        assert before == operator.api.of("PersistentVolumeClaim")["data-big-gpu-0"]["metadata"]
        ready = operator.api.condition("gpu", "Ready")
        assert "was made for NodeSet big-gpu" in ready["message"]

    run(main)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 17))
def test_whatever_write_fails_there_is_one_claim_for_each_worker_and_none_is_left(
    fault: Fault, at: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        operator.api.put(with_volumes(persistentVolumeClaimRetentionPolicy=GOES))
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["data-gpu-0", "data-gpu-1"] == sorted(uids(operator))
        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        delete(operator)
        await operator.lead(for_s=3 * SETTLED_S)
        assert (0, 0) == (len(operator.api.of("NodeSet")), len(uids(operator)))
        assert len(operator.trouble.writes) >= 16, "there are writes at which none failed"

    run(main)


@pytest.mark.parametrize("claim", ["data-gpu-0", "shared"])
def test_a_claim_that_is_deleted_under_a_worker_is_told(claim: str) -> None:
    """One of the worker's own, and one that somebody else has made."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        shared = {"name": "shared", "namespace": "slurm", "annotations": {}}
        operator.api.put({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": shared})
        operator.api.put(with_volumes(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        used = {"name": "home", "persistentVolumeClaim": {"claimName": "shared"}}
        spec = operator.api.pods["gpu-0"]["spec"]
        operator.api.change("Pod", "gpu-0", spec={"volumes": [*spec["volumes"], used]})
        await operator.lead(for_s=SETTLED_S)
        assert operator.api.condition("gpu", "Ready")["status"] == "True"

        meta = operator.api.of("PersistentVolumeClaim")[claim]["metadata"]
        gone = {
            **meta,
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "finalizers": ["kubernetes.io/pvc-protection"],
        }
        operator.api.change("PersistentVolumeClaim", claim, metadata=gone)
        await operator.lead(for_s=SETTLED_S)

        told = operator.api.condition("gpu", "Ready")
        assert (told["status"], told["reason"]) == ("False", "VolumeDeleted")
        assert f"PVC {claim} is being deleted" in told["message"]

    run(main)
