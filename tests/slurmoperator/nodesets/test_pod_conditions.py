"""What workers' pods are told for others: labels, and how Slurm has their nodes."""

from typing import Any

from slurmoperator.nodesets.pod_conditions.node_states import KEPT_ANNOTATION
from slurmruntime.values.names import AUTOSCALERS
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, node_set
from tests.virtual_time import VirtualClock, run

PREFIX = "SlurmNodeState"


def told(operator: Operator, name: str) -> dict[str, Any]:
    """The messages of the conditions that hold, by type."""
    conditions = operator.api.pods[name]["status"]["conditions"]
    return {
        condition["type"]: condition.get("message", "")
        for condition in conditions
        if condition["status"] == "True"
    }


KARPENTER, OTHER = AUTOSCALERS


def said_to_autoscalers(operator: Operator, name: str) -> dict[str, str]:
    """The annotations for them, and ours of which are ours."""
    annotations = operator.api.pods[name]["metadata"].get("annotations", {})
    return {key: annotations[key] for key in (*AUTOSCALERS, KEPT_ANNOTATION) if key in annotations}


def set_busy(operator: Operator, name: str, *, is_busy: bool) -> None:
    states = operator.slurm.nodes.by_name[name].states
    states -= {"IDLE", "MIXED"}
    states |= {"MIXED" if is_busy else "IDLE"}


def test_a_pod_has_the_states_of_its_slurm_node_and_keeps_the_conditions_of_others() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        assert {"Ready": "", f"{PREFIX}Idle": ""} == told(operator, "gpu-0")

        node = operator.slurm.nodes.by_name["gpu-0"]
        node.states |= {"DRAIN", "PLANNED"}
        node.reason = "bad fan"
        await operator.lead(for_s=SETTLED_S)
        drained = {f"{PREFIX}Idle": "bad fan", f"{PREFIX}Drain": "bad fan"}
        assert {"Ready": "", **drained} == told(operator, "gpu-0")
        assert {"Ready": "", f"{PREFIX}Idle": ""} == told(operator, "gpu-1")

        node.states -= {"DRAIN"}
        node.reason = ""
        await operator.lead(for_s=SETTLED_S)
        assert {"Ready": "", f"{PREFIX}Idle": ""} == told(operator, "gpu-0")
        del operator.slurm.nodes.by_name["gpu-0"]
        await operator.lead(for_s=SETTLED_S)
        assert {"Ready": ""} == told(operator, "gpu-0")

    run(main)


def test_a_drain_is_told_at_once_and_short_jobs_now_and_then() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        before = len(operator.trouble.writes)
        node = operator.slurm.nodes.by_name["gpu-0"]

        def flip() -> None:
            node.states ^= {"IDLE", "MIXED"}

        def drain() -> None:
            node.states |= {"DRAIN"}
            node.reason = "bad fan"

        def is_told() -> None:
            assert f"{PREFIX}Drain" in told(operator, "gpu-0")

        every_reading = dict.fromkeys([float(at_s) for at_s in range(3, 60, 2)], flip)
        await operator.lead(for_s=70, then=every_reading | {61.0: drain, 66.0: is_told})

        statuses = [
            write for write in operator.trouble.writes[before:] if write.endswith("gpu-0/status")
        ]
        assert 3 <= len(statuses) <= 8, statuses  # not one for each of 29 changes

    run(main)


def test_a_new_pod_is_not_told_how_slurm_has_its_predecessor() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.slurm.register("gpu-0")
        operator.slurm.nodes.by_name["gpu-0"].states |= {"DRAIN"}
        operator.api.unstartable = frozenset({"registry.example.org/slurmd:26.05"})
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        assert "status" not in operator.api.pods["gpu-0"]

    run(main)


def test_while_slurm_does_not_answer_the_old_word_holds() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.is_away = True
        await operator.lead(for_s=SETTLED_S)
        assert f"{PREFIX}Idle" in told(operator, "gpu-0")

    run(main)


def test_autoscalers_are_to_spare_a_worker_while_it_has_jobs() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        assert said_to_autoscalers(operator, "gpu-0") == {}

        for _ in range(2):  # by another leader as well
            before = len(operator.trouble.writes)
            set_busy(operator, "gpu-0", is_busy=True)
            await operator.lead(for_s=SETTLED_S)
            assert AUTOSCALERS.items() <= said_to_autoscalers(operator, "gpu-0").items()
            assert said_to_autoscalers(operator, "gpu-1") == {}
            set_busy(operator, "gpu-0", is_busy=False)
            await operator.lead(for_s=SETTLED_S)
            assert said_to_autoscalers(operator, "gpu-0") == {}
            writes = [write for write in operator.trouble.writes[before:] if "/pods/gpu-0" in write]
            assert len(writes) == 2, writes  # those of the conditions

    run(main)


def test_a_users_own_word_to_autoscalers_stays() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("Pod", "gpu-0", metadata={"annotations": {KARPENTER: "true"}})
        operator.api.change("Pod", "gpu-1", metadata={"annotations": {OTHER: "true"}})
        for name in ("gpu-0", "gpu-1"):
            set_busy(operator, name, is_busy=True)
        await operator.lead(for_s=SETTLED_S)
        assert said_to_autoscalers(operator, "gpu-0") == {**AUTOSCALERS, KEPT_ANNOTATION: OTHER}
        one = {KARPENTER: "true", OTHER: "true"}
        assert said_to_autoscalers(operator, "gpu-1") == {**one, KEPT_ANNOTATION: KARPENTER}

        own = operator.api.pods["gpu-0"]["metadata"]["annotations"] | {OTHER: "true"}
        operator.api.change("Pod", "gpu-0", metadata={"annotations": own})  # instead of ours
        for name in ("gpu-0", "gpu-1"):
            set_busy(operator, name, is_busy=False)
        await operator.lead(for_s=SETTLED_S)
        assert said_to_autoscalers(operator, "gpu-0") == one
        assert said_to_autoscalers(operator, "gpu-1") == {OTHER: "true"}

    run(main)


def test_what_is_not_known_changes_nothing_for_autoscalers() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        set_busy(operator, "gpu-0", is_busy=True)
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.is_away = True
        for name, is_busy in (("gpu-0", False), ("gpu-1", True)):
            set_busy(operator, name, is_busy=is_busy)
        await operator.lead(for_s=SETTLED_S)
        assert AUTOSCALERS.items() <= said_to_autoscalers(operator, "gpu-0").items()
        assert said_to_autoscalers(operator, "gpu-1") == {}

        operator.slurm.is_away = False
        del operator.slurm.nodes.by_name["gpu-0"]  # it may have jobs that Slurm does not know
        await operator.lead(for_s=SETTLED_S)
        assert AUTOSCALERS.items() <= said_to_autoscalers(operator, "gpu-0").items()
        assert AUTOSCALERS.items() <= said_to_autoscalers(operator, "gpu-1").items()

    run(main)


def test_autoscalers_need_not_spare_whom_evictions_need_not_spare() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        set_busy(operator, "gpu-0", is_busy=True)
        await operator.lead(for_s=SETTLED_S)
        assert AUTOSCALERS.items() <= said_to_autoscalers(operator, "gpu-0").items()
        operator.api.change("NodeSet", "gpu", spec={"workloadDisruptionProtection": False})
        await operator.lead(for_s=SETTLED_S)
        assert said_to_autoscalers(operator, "gpu-0") == {}

    run(main)


def test_workers_have_the_labels_by_which_others_find_them() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1, ordinalPadding=3))
        await operator.lead(for_s=SETTLED_S)
        labels = operator.api.pods["gpu-000"]["metadata"]["labels"]
        assert {
            "pod-name": "gpu-000",
            "pod-index": "000",
            "pod-hostname": "gpu-000",
            "scaling-mode": "StatefulSet",
            "pod-protect": "true",
        } == {
            key.removeprefix("nodeset.slinky.slurm.net/"): value
            for key, value in labels.items()
            if key.startswith("nodeset.slinky.slurm.net/")
        }

    run(main)
