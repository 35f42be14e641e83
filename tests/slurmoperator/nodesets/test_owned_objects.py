"""What a NodeSet has besides its workers, and whom evictions may have."""

from typing import Any

from slurmoperator.objects.labels import TAKE_OVER_ANNOTATION
from tests.make.apiserver import Manifest
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run

SSHD = "gpu-workers-ssh-config"


def machine(name: str, *, cordoned: bool) -> Manifest:
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"unschedulable": cordoned},
    }


def protected(operator: Operator) -> list[str]:
    """The workers that evictions must leave alone: those that the budget selects."""
    (budget,) = operator.api.of("PodDisruptionBudget").values()
    assert 2**31 - 1 == budget["spec"]["minAvailable"]
    wanted = budget["spec"]["selector"]["matchLabels"].items()
    pods = operator.api.pods
    return [name for name in names_of(pods) if wanted <= pods[name]["metadata"]["labels"].items()]


def test_they_are_made_before_the_first_worker_and_written_once() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)

        kinds = [write.split("/")[-2] for write in operator.trouble.writes]
        budget, sshd = kinds.index("poddisruptionbudgets"), kinds.index("configmaps")
        first = next(i for i, w in enumerate(operator.trouble.writes) if w.startswith("POST"))
        assert max(budget, sshd) < first
        assert ["gpu-0", "gpu-1"] == protected(operator)
        assert "sshd_config" in operator.api.of("ConfigMap")[SSHD]["data"]

        count = len(operator.trouble.writes)
        await operator.lead(for_s=300)
        assert [] == operator.trouble.writes[count:]

    run(main)


def test_what_somebody_has_taken_away_comes_back_and_what_is_not_wanted_goes() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        away = {SETTLED_S: lambda: operator.api.remove("PodDisruptionBudget", "gpu-workers")}
        await operator.lead(for_s=3 * SETTLED_S, then=away)
        assert ["gpu-0"] == protected(operator)

        operator.api.change(
            "NodeSet", "gpu", spec={"workloadDisruptionProtection": False, "ssh": None}
        )
        await operator.lead(for_s=SETTLED_S)
        assert {} == operator.api.of("PodDisruptionBudget") == operator.api.of("ConfigMap")
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)


def test_a_cordoned_worker_may_be_evicted_when_its_jobs_have_ended_and_not_before() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        for number in (0, 1):
            operator.api.create(machine(f"machine-gpu-{number}", cordoned=False))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-0")
        for number in (0, 1):
            operator.api.change("Node", f"machine-gpu-{number}", spec={"unschedulable": True})
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == protected(operator)

        count = len(operator.trouble.writes)
        await operator.lead(for_s=300)
        assert [] == operator.trouble.writes[count:], "it goes to and fro"

        del operator.slurm.jobs[1]
        await operator.lead(for_s=SETTLED_S)
        assert [] == protected(operator)

        count = len(operator.trouble.writes)
        operator.api.change("Node", "machine-gpu-0", spec={"unschedulable": False})
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == protected(operator)
        assert "DRAIN" not in operator.slurm.nodes.by_name["gpu-0"].states
        after = operator.trouble.writes[count:]
        protects = after.index("PATCH /api/v1/namespaces/slurm/pods/gpu-0")
        assert protects < after.index("POST /nodes/"), "a job could come first"

    run(main)


def test_while_slurm_is_away_evictions_wait() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        operator.api.create(machine("machine-gpu-0", cordoned=False))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.is_away = True
        operator.api.change("Node", "machine-gpu-0", spec={"unschedulable": True})
        await operator.lead(for_s=600)

        assert ["gpu-0"] == protected(operator)

    run(main)


def test_somebody_elses_budget_of_that_name_is_named_and_stays() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        theirs: dict[str, Any] = {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "gpu-workers", "namespace": "slurm", "uid": "b", "generation": 1},
            "spec": {"minAvailable": 0},
        }
        where = "/apis/policy/v1/namespaces/slurm/poddisruptionbudgets/gpu-workers"
        operator.api._store(where, theirs)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)

        said = operator.api.condition("gpu", "Accepted")
        assert ("False", "NotOurs") == (said["status"], said["reason"])
        assert "PodDisruptionBudget slurm/gpu-workers exists already" in said["message"]
        assert [] == names_of(operator.api.pods)
        assert 0 == operator.api.of("PodDisruptionBudget")["gpu-workers"]["spec"]["minAvailable"]

        meta = operator.api.of("NodeSet")["gpu"]["metadata"]
        handed = {**meta, "annotations": {TAKE_OVER_ANNOTATION: "true"}}
        operator.api.change("NodeSet", "gpu", metadata=handed)
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == protected(operator)
        assert "True" == operator.api.condition("gpu", "Accepted")["status"]

    run(main)
