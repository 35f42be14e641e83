"""One worker on each Kubernetes node that fits: it comes with its node, and goes when its jobs have ended."""

from typing import Any

import pytest

from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.given import LABELS, machine, on_nodes
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run


def relabel(operator: Operator, name: str, labels: dict[str, str]) -> None:
    meta = operator.api.of("Node")[name]["metadata"]
    operator.api.change("Node", name, metadata={**meta, "labels": labels})


def test_each_node_that_fits_has_one_and_a_new_node_gets_one_at_once() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("a.example", "b"):
            operator.api.create(machine(name))
        operator.api.create(machine("other"))
        relabel(operator, "other", {})
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S, then={5.0: lambda: operator.api.create(machine("c"))})

        assert ["gpu-a.example", "gpu-b", "gpu-c"] == names_of(operator.api.pods)
        assert {"a", "b", "c"} == operator.slurm.nodes.by_name.keys()
        assert (3, 3) == tuple(
            operator.api.status("gpu")[each] for each in ("desired", "readyReplicas")
        )
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        count = len(operator.trouble.writes)
        await operator.lead(for_s=300)
        assert [] == operator.trouble.writes[count:]

    run(main)


@pytest.mark.parametrize("is_gone", [False, True])
def test_the_worker_of_a_node_that_does_not_fit_any_more_waits_for_its_job(
    *, is_gone: bool
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("a", "b"):
            operator.api.create(machine(name))
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "a")
        if is_gone:
            operator.api.remove("Node", "a")
        else:
            relabel(operator, "a", {})
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-a", "gpu-b"] == names_of(operator.api.pods)
        assert operator.slurm.nodes.by_name["a"].reason.startswith("slurm-operator: ")
        del operator.slurm.jobs[1]
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-b"] == names_of(operator.api.pods)
        assert 1 == operator.api.status("gpu")["desired"]

    run(main)


def test_the_worker_of_a_node_that_a_new_leader_cannot_read_stays() -> None:
    """It is not in the cache, and not gone either."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        meta = operator.api.of("Node")["a"]["metadata"]
        meta["labels"] = ["no map"]
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["gpu-a"] == names_of(operator.api.pods)
        assert {"IDLE", "DYNAMIC_NORM"} == operator.slurm.nodes.by_name["a"].states
        assert 1 == operator.api.status("gpu")["desired"]
        meta["labels"] = {}
        await operator.lead(for_s=2 * SETTLED_S)
        assert [] == names_of(operator.api.pods)

    run(main)


def test_a_node_that_two_want_is_the_older_ones_until_that_wants_it_no_more() -> None:
    """Both come at once, when neither one's pods are in the cache."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("a", "b"):
            operator.api.create(machine(name))
        two = on_nodes()
        two["metadata"] |= {
            "name": "two",
            "uid": "a-uid",
            "creationTimestamp": "2026-01-02T00:00:00Z",
        }
        operator.api.put(two)
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-a", "gpu-b"] == names_of(operator.api.pods)
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        ready = operator.api.condition("two", "Ready")
        assert "False" == ready["status"]
        assert "belongs to the older NodeSet gpu" in ready["message"]
        operator.api.change(
            "NodeSet", "gpu", spec={"template": {"spec": {"nodeSelector": {"no": "n"}}}}
        )
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["two-a", "two-b"] == names_of(operator.api.pods)
        assert "True" == operator.api.condition("two", "Ready")["status"]
        operator.api.change("NodeSet", "gpu", spec={"template": {"spec": {"nodeSelector": LABELS}}})
        await operator.lead(for_s=SETTLED_S)
        assert ["two-a", "two-b"] == names_of(operator.api.pods), "who has one keeps it"

    run(main)


def test_a_name_with_a_number_is_the_numbered_node_sets() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("gpu-1", "gpu-x"):
            operator.api.create(machine(name))
        nodes = on_nodes()
        nodes["metadata"] |= {"name": "nodes", "uid": "nodes"}
        operator.api.put(nodes)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0", "nodes-gpu-x"] == names_of(operator.api.pods)
        operator.api.change("NodeSet", "gpu", spec={"replicas": 2})
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0", "gpu-1", "nodes-gpu-x"] == names_of(operator.api.pods)
        assert "belongs to pod gpu-1" in operator.api.condition("nodes", "Ready")["message"]

    run(main)


def test_a_cordon_drains_and_a_worker_that_was_evicted_comes_back_after_it() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("Node", "a", spec={"unschedulable": True})
        await operator.lead(for_s=SETTLED_S)
        assert "cordoned" in operator.slurm.nodes.by_name["a"].reason
        meta = operator.api.pods["gpu-a"]["metadata"]
        gone = {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        operator.api.change("Pod", "gpu-a", metadata=gone)
        await operator.lead(for_s=SETTLED_S)
        assert [] == names_of(operator.api.pods)
        operator.api.change("Node", "a", spec={"unschedulable": False})
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-a"] == names_of(operator.api.pods)

    run(main)


def test_another_mode_replaces_all_workers_and_none_with_a_job_is_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes(scalingMode="StatefulSet", replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-0")
        operator.api.change("NodeSet", "gpu", spec={"scalingMode": "DaemonSet"})
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-0", "gpu-a"] == names_of(operator.api.pods)
        del operator.slurm.jobs[1]
        operator.api.change("NodeSet", "gpu", spec={"scalingMode": "StatefulSet"})
        await operator.lead(for_s=3 * SETTLED_S)
        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)

    run(main)


def test_an_update_replaces_them_where_they_are_and_a_deletion_takes_all() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        for name in ("a", "b", "c"):
            operator.api.create(machine(name))
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("NodeSet", "gpu", spec={"slurmd": {"image": "slurmd:2"}})
        await operator.lead(for_s=5 * SETTLED_S)
        pods = operator.api.pods
        assert ["gpu-a", "gpu-b", "gpu-c"] == names_of(pods)
        assert {"slurmd:2"} == {pod["spec"]["containers"][0]["image"] for pod in pods.values()}
        meta = operator.api.of("NodeSet")["gpu"]["metadata"]
        gone = {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}
        operator.api.change("NodeSet", "gpu", metadata=gone)
        await operator.lead(for_s=2 * SETTLED_S)
        assert (0, 0) == (len(operator.api.pods), len(operator.api.of("NodeSet")))

    run(main)


def test_a_template_that_cannot_be_read_is_told() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes(template={"spec": {"nodeSelector": ["gpu"]}}))
        await operator.lead(for_s=SETTLED_S)

        accepted = operator.api.condition("gpu", "Accepted")
        assert ("False", "BadInput") == (accepted["status"], accepted["reason"])
        assert "nodeSelector" in accepted["message"]
        assert [] == names_of(operator.api.pods)

    run(main)


def _required(**term: Any) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [term]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (_required(matchExpressions=[{"key": "gpu", "operator": "in", "values": ["yes"]}]), "'in'"),
        (_required(matchExpressions=[{"key": "gpu", "operator": "In"}]), "expected values"),
        (
            _required(matchExpressions=[{"key": "gpu", "operator": "Gt", "values": ["1", "2"]}]),
            "an integer",
        ),
        (
            _required(matchFields=[{"key": "name", "operator": "In", "values": ["a"]}]),
            "metadata.name",
        ),
        ({"tolerations": [{"key": "down", "operator": "exists"}]}, "'exists'"),
        ({"tolerations": [{"key": "down", "effect": "NoExcute"}]}, "'NoExcute'"),
    ],
)
def test_a_typing_error_in_the_template_costs_no_worker(spec: dict[str, Any], said: str) -> None:
    """No API server has judged a template: what it would refuse in a pod must not select no node."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(machine("a"))
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        if "tolerations" in spec:
            taint = {"key": "down", "effect": "NoExecute"}
            operator.api.change("Node", "a", spec={"taints": [taint]})
        operator.api.change("NodeSet", "gpu", spec={"template": {"spec": spec}})
        await operator.lead(for_s=3 * SETTLED_S)

        assert ["gpu-a"] == names_of(operator.api.pods)
        assert operator.slurm.nodes.by_name["a"].states == {"IDLE", "DYNAMIC_NORM"}
        accepted = operator.api.condition("gpu", "Accepted")
        assert ("False", "BadInput") == (accepted["status"], accepted["reason"])
        assert said in accepted["message"]

    run(main)


def test_where_workers_with_numbers_go_is_left_to_kubernetes() -> None:
    """A newer Kubernetes may know an operator that we do not."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        spec = {"tolerations": [{"key": "down", "operator": "Lt", "value": "3"}]}
        operator.api.put(node_set(replicas=1, template={"spec": spec}))
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 15))
def test_whatever_write_fails_it_comes_out_the_same_and_no_job_is_lost(
    fault: Fault, at: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        for name in ("a", "b"):
            operator.api.create(machine(name))
        operator.api.put(on_nodes())
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "b")
        relabel(operator, "a", {})
        await operator.lead(for_s=2 * SETTLED_S)
        assert ["gpu-b"] == names_of(operator.api.pods)
        assert "RUNNING" == operator.slurm.jobs[1].state
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert len(operator.trouble.writes) >= 14, "there are writes at which none failed"

    run(main)
