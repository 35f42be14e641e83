"""Another template: workers are replaced when they are surely drained, a few at a time; a broken one goes no further."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.given import container, current, update
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

ONE = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}}
WITHOUT_IMAGE = {
    "phase": "Pending",
    "containerStatuses": [
        {
            "name": "slurmd",
            "state": {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
        }
    ],
}


def kept(operator: Operator) -> list[tuple[int, str]]:
    """The templates that are kept: their numbers and images."""
    found = operator.api.of("ControllerRevision").values()
    return sorted((each["revision"], each["data"]["spec"]["slurmd"]["image"]) for each in found)


def test_idle_workers_are_replaced_one_after_the_other_and_a_busy_one_after_its_job() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=3, updateStrategy=ONE, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-2")
        update(operator)
        await operator.lead(for_s=3 * SETTLED_S)

        assert ["gpu-0", "gpu-1"] == current(operator)
        node = operator.slurm.nodes.by_name["gpu-2"]
        assert node.reason.startswith("slurm-operator: to be replaced")
        assert "RUNNING" == operator.slurm.jobs[1].state
        told = operator.api.condition("gpu", "Updated")
        assert ("False", "Updating") == (told["status"], told["reason"])
        assert "gpu-2 is removed" in told["message"]
        assert 2 == operator.api.status("gpu")["updatedReplicas"]

        del operator.slurm.jobs[1]
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-0", "gpu-1", "gpu-2"] == current(operator)
        assert {""} == {each.reason for each in operator.slurm.nodes.by_name.values()}
        assert "True" == operator.api.condition("gpu", "Updated")["status"]
        assert [(2, "slurmd:2")] == kept(operator)

        count = len(operator.trouble.writes)
        await operator.lead(for_s=300)
        assert [] == operator.trouble.writes[count:]

    run(main)


def test_what_leaves_the_template_as_it_is_replaces_nobody() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        uids = {pod["metadata"]["uid"] for pod in operator.api.pods.values()}
        operator.api.change(
            "NodeSet", "gpu", spec={"partition": {"enabled": False}, "minReadySeconds": 1}
        )
        await operator.lead(for_s=SETTLED_S)
        assert uids == {pod["metadata"]["uid"] for pod in operator.api.pods.values()}

    run(main)


@pytest.mark.parametrize("strategy", [ONE, {"type": "OnDelete"}])
def test_a_template_that_makes_no_pods_is_refused_although_no_worker_is_missing(
    strategy: dict[str, Any],
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2, updateStrategy=strategy, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("NodeSet", "gpu", spec={"slurmd": {}})
        await operator.lead(for_s=SETTLED_S)
        accepted = operator.api.condition("gpu", "Accepted")
        assert ("False", "BadInput") == (accepted["status"], accepted["reason"])
        assert "spec.slurmd.image: expected an image" == accepted["message"]
        assert "False" == operator.api.condition("gpu", "Updated")["status"]
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)

        update(operator)
        await operator.lead(for_s=SETTLED_S)
        assert "True" == operator.api.condition("gpu", "Accepted")["status"]

    run(main)


def test_with_on_delete_only_a_deleted_worker_gets_the_template() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        strategy = {"type": "OnDelete"}
        operator.api.put(node_set(replicas=2, updateStrategy=strategy, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        update(operator)
        await operator.lead(for_s=SETTLED_S)
        assert [] == current(operator)
        told = operator.api.condition("gpu", "Updated")
        assert ("False", "OnDelete") == (told["status"], told["reason"])
        assert [(1, "slurmd:1"), (2, "slurmd:2")] == kept(operator)

        operator.api.remove("Pod", "gpu-1")
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-1"] == current(operator)

    run(main)


def test_a_drain_for_an_update_is_lifted_if_nobody_is_replaced_any_more() -> None:
    """Also with OnDelete, where SchedMD's operator forgets it."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, updateStrategy=ONE, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-0")
        update(operator)
        await operator.lead(for_s=SETTLED_S)
        assert "DRAIN" in operator.slurm.nodes.by_name["gpu-0"].states
        operator.api.change("NodeSet", "gpu", spec={"updateStrategy": {"type": "OnDelete"}})
        await operator.lead(for_s=SETTLED_S)
        assert "" == operator.slurm.nodes.by_name["gpu-0"].reason
        assert "RUNNING" == operator.slurm.jobs[1].state

    run(main)


def without_image(operator: Operator) -> Callable[[], None]:
    """What kubelets say of workers with the image `typo`."""

    def say() -> None:
        for name, pod in operator.api.pods.items():
            is_new = "status" not in pod and "deletionTimestamp" not in pod["metadata"]
            if is_new and operator.api.of("NodeSet")["gpu"]["spec"]["slurmd"]["image"] == "typo":
                operator.api.change("Pod", name, spec={"nodeName": "m"}, status=WITHOUT_IMAGE)

    return say


@pytest.mark.parametrize("says_why", [True, False])
def test_a_broken_template_stops_at_the_first_worker_and_is_taken_back(*, says_why: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=3, updateStrategy=ONE, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        update(operator, "typo")
        say = without_image(operator)
        events = {float(n): say for n in range(1, 400)} if says_why else {}
        operator.api.unstartable = frozenset({"typo"})
        await operator.lead(for_s=400, then=events)
        assert ["gpu-2"] == current(operator)
        assert 2 == operator.api.status("gpu")["readyReplicas"]
        told = operator.api.condition("gpu", "Updated")
        assert ("False", "Stuck") == (told["status"], told["reason"])
        said = "ImagePullBackOff: no such image" if says_why else "is not ready after more than"
        assert f"pod slurm/gpu-2{': container slurmd' if says_why else ''}" in told["message"]
        assert said in told["message"]
        assert "change it back" in told["message"]
        assert said in operator.api.condition("gpu", "Ready")["message"]

        update(operator, "slurmd:1")
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-0", "gpu-1", "gpu-2"] == current(operator)
        assert "True" == operator.api.condition("gpu", "Updated")["status"]
        assert [(3, "slurmd:1")] == kept(operator)

    run(main)


def test_a_template_of_which_no_worker_can_be_made_costs_none() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("NodeSet", "gpu", spec={"slurmd": {}})
        await operator.lead(for_s=300)

        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        assert {""} == {each.reason for each in operator.slurm.nodes.by_name.values()}
        assert "Waiting" == operator.api.condition("gpu", "Updated")["reason"]

    run(main)


def test_while_slurm_is_away_nobody_is_replaced() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.is_away = True
        update(operator)
        await operator.lead(for_s=600)
        assert [] == current(operator)
        assert "Waiting" == operator.api.condition("gpu", "Updated")["reason"]

    run(main)


def test_as_many_old_templates_are_kept_as_wanted() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, revisionHistoryLimit=1, **container("slurmd:1")))
        for number in (1, 2, 3):
            update(operator, f"slurmd:{number}")
            await operator.lead(for_s=2 * SETTLED_S)
        assert [(2, "slurmd:2"), (3, "slurmd:3")] == kept(operator)

    run(main)


def test_a_name_that_somebody_else_has_taken_is_not_used() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        (path,) = (p for p, o in operator.api.objects.items() if o["kind"] == "ControllerRevision")
        taken: dict[str, Any] = operator.api.objects[path]
        taken["metadata"]["ownerReferences"] = []
        before = operator.api.status("gpu")["nodeSetHash"]
        await operator.lead(for_s=2 * SETTLED_S)

        told = operator.api.status("gpu")
        assert 1 == told["collisionCount"]
        assert before != told["nodeSetHash"]
        assert ["gpu-0"] == current(operator)
        assert taken == operator.api.objects[path]

    run(main)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 31))
def test_whatever_write_fails_all_workers_come_to_the_template(fault: Fault, at: int) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        operator.api.put(node_set(replicas=2, updateStrategy=ONE, **container("slurmd:1")))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-0")
        update(operator)
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-1"] == current(operator)
        assert "RUNNING" == operator.slurm.jobs[1].state
        del operator.slurm.jobs[1]
        await operator.lead(for_s=2 * SETTLED_S)

        assert ["gpu-0", "gpu-1"] == current(operator)
        assert {""} == {each.reason for each in operator.slurm.nodes.by_name.values()}
        assert [(2, "slurmd:2")] == kept(operator)

    run(main)
