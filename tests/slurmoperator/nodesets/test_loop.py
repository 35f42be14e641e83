"""The loop over NodeSets on recording peers: what is done, in which order, and what is never done."""

from functools import partial

import pytest

from tests.make import apiserver
from tests.make.slurm_nodes import Node
from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run


def test_workers_are_created_and_told() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=3))
        await operator.lead(for_s=SETTLED_S)

        assert ["gpu-0", "gpu-1", "gpu-2"] == names_of(operator.api.pods)
        assert {"true"} == {
            pod["metadata"]["labels"]["nodeset.slinky.slurm.net/pod-protect"]
            for pod in operator.api.pods.values()
        }
        told = operator.api.status("gpu")
        counts = ("replicas", "readyReplicas", "availableReplicas", "desired", "slurmIdle")
        assert 3 == told["updatedReplicas"]
        assert [3] * 5 == [told[count] for count in counts]
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert "True" == operator.api.condition("gpu", "SlurmKnown")["status"]
        assert "app.kubernetes.io/instance=gpu,app.kubernetes.io/name=slurmd" == told["selector"]

        before = len(operator.trouble.writes)
        await operator.lead(for_s=SETTLED_S)  # another leader finds nothing to do
        assert [] == operator.trouble.writes[before:]

    run(main)


def test_of_too_many_the_idle_go_first_and_the_busy_one_stays_until_its_job_has_ended() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=5))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-[1,4]")
        operator.slurm.jobs[2] = job(2, "gpu-2")
        operator.api.change("NodeSet", "gpu", spec={"replicas": 2})
        await operator.lead(for_s=SETTLED_S)

        # Three have jobs: two that are wanted, and the one with the highest number, which is drained.
        assert ["gpu-1", "gpu-2", "gpu-4"] == names_of(operator.api.pods)
        drained = operator.slurm.nodes.by_name["gpu-4"]
        assert "DRAIN" in drained.states
        assert "slurm-operator: scaled in" == drained.reason
        said = operator.api.condition("gpu", "Ready")
        assert "ScalingIn" == said["reason"]
        assert (
            "3 workers running, 2 desired; gpu-4 is removed (scaled in) when its jobs have ended"
            == said["message"]
        )

        del operator.slurm.jobs[1]
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-1", "gpu-2"] == names_of(operator.api.pods)
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert 2 == operator.api.status("gpu")["replicas"]

    run(main)


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("MIXED", "Slurm has jobs on gpu-0"),
        ("IDLE", "gpu-0 was not drained: a job may just have started there"),
        ("DRAIN", None),
    ],
)
def test_the_successor_of_a_worker_that_ended_under_its_job_gives_slurm_time_to_miss_it(
    state: str, expected: str | None
) -> None:
    mark = "slurm-bridge.dev/may-have-lost-jobs"

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        (first,) = operator.api.pods.values()
        assert mark not in (first["metadata"].get("annotations") or {})

        def begin() -> None:
            operator.slurm.nodes.by_name["gpu-0"].states = {state}

        def evict() -> None:
            operator.api.change("Pod", "gpu-0", status={"phase": "Failed", "reason": "Evicted"})

        await operator.lead(for_s=2 * SETTLED_S, then={SETTLED_S: begin, SETTLED_S + 10: evict})

        (second,) = operator.api.pods.values()
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        annotations = second["metadata"].get("annotations") or {}
        assert expected == annotations.get(mark)

    run(main)


def test_who_has_jobs_is_read_before_anybody_is_chosen() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=3))
        operator.slurm.jobs[1] = job(1, "gpu-2")
        scale_in = partial(operator.api.change, "NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=2 * SETTLED_S, then={SETTLED_S: scale_in})

        assert ["gpu-2"] == names_of(operator.api.pods)
        assert "" == operator.slurm.nodes.by_name["gpu-2"].reason

    run(main)


def test_a_request_without_a_reply_may_still_take_effect() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs = {number: job(number, f"gpu-{number}") for number in (0, 1)}
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        there: list[list[str]] = []

        def keep_it() -> None:
            assert "DRAIN" in operator.slurm.nodes.by_name["gpu-1"].states
            operator.slurm.late_s = 8
            operator.api.change("NodeSet", "gpu", spec={"replicas": 2})

        def let_it_go() -> None:
            assert 0 == operator.slurm.late_s, "it has not been undrained"
            del operator.slurm.jobs[1]
            operator.api.change("NodeSet", "gpu", spec={"replicas": 1})

        await operator.lead(
            for_s=2 * SETTLED_S,
            then={
                30: keep_it,
                31: let_it_go,
                38: lambda: there.append(names_of(operator.api.pods)),
            },
        )
        assert [["gpu-0", "gpu-1"]] == there, "an undrain was still under way, and a job might come"
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)


def test_a_pod_of_ours_that_the_watch_has_not_shown_is_no_trouble(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apiserver, "WATCH_LAGS_S", 5.0)

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(Fault.LOST_REPLY, at=4))
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=4, kubelet=False)
        assert 2 == sum(write.startswith("POST") for write in operator.trouble.writes)
        assert "NotReady" == operator.api.condition("gpu", "Ready")["reason"]

    run(main)


def test_while_slurm_is_away_nobody_goes() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=3))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.is_away = True
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        before = len(operator.trouble.writes)
        await operator.lead(for_s=600)

        assert ["gpu-0", "gpu-1", "gpu-2"] == names_of(operator.api.pods)
        said = operator.api.condition("gpu", "SlurmKnown")
        assert ("Unknown", "NotRead") == (said["status"], said["reason"])
        assert "no connection" in said["message"]
        assert all(write.endswith("/status") for write in operator.trouble.writes[before:])
        assert len(operator.trouble.writes) - before <= 3, "it tells the same again and again"

        operator.slurm.is_away = False
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)


@pytest.mark.parametrize("nodes", ["gpu-[0-", ""])
def test_a_job_of_which_nobody_knows_where_it_runs_holds_all(nodes: str) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, nodes)
        operator.api.change("NodeSet", "gpu", spec={"replicas": 0})
        await operator.lead(for_s=SETTLED_S)

        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        assert "job 1" in operator.api.condition("gpu", "SlurmKnown")["message"]

    run(main)


def test_what_never_started_goes_without_slurm() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.slurm.is_away = True
        operator.api.put(node_set(replicas=3))
        await operator.lead(for_s=SETTLED_S, kubelet=False)
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=SETTLED_S, kubelet=False)
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)


def test_another_controllers_workers_are_not_judged_by_our_slurm() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2, controllerRef={"name": "other"}))
        await operator.lead(for_s=SETTLED_S)
        operator.api.change("NodeSet", "gpu", spec={"replicas": 0})
        await operator.lead(for_s=SETTLED_S)

        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        assert not any("slurm" in write for write in operator.trouble.writes if "/node/" in write)
        assert "no RestApi" in operator.api.condition("gpu", "SlurmKnown")["message"]

    run(main)


@pytest.mark.parametrize("other", ["other", "odd"])
def test_a_slurm_that_is_away_or_odd_costs_only_its_own_node_sets(other: str) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set("gpu", replicas=2))
        operator.api.put(node_set("far", replicas=2, controllerRef={"name": other}))

        def scale() -> None:
            for name in ("gpu", "far"):
                operator.api.change("NodeSet", name, spec={"replicas": 0})

        await operator.lead(for_s=2 * SETTLED_S, then={SETTLED_S: scale})

        assert ["far-0", "far-1"] == names_of(operator.api.pods)
        assert "True" == operator.api.condition("gpu", "SlurmKnown")["status"]
        assert "Unknown" == operator.api.condition("far", "SlurmKnown")["status"]
        assert {f"slurm/{other}", "slurm/site"} == set(operator.opened)
        assert 2 == len(operator.opened)

    run(main)


def test_a_cordoned_kubernetes_node_is_drained_and_comes_back() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        machine = {
            "kind": "Node",
            "metadata": {
                "name": "machine-gpu-0",
                "uid": "n",
                "creationTimestamp": "2026-01-01T00:00:00Z",
                "annotations": {
                    "nodeset.slinky.slurm.net/node-cordon-reason": "new  'disk'\n" * 99
                },
            },
            "spec": {"unschedulable": True},
        }
        operator.api.create(machine)
        await operator.lead(for_s=SETTLED_S)
        node = operator.slurm.nodes.by_name["gpu-0"]
        assert node.reason.startswith("slurm-operator: new disk new disk")
        assert "DRAIN" in node.states

        before = len(operator.trouble.writes)
        await operator.lead(for_s=SETTLED_S)
        assert [] == operator.trouble.writes[before:], "it drains again what is drained"

        operator.api.change("Node", "machine-gpu-0", spec={"unschedulable": False})
        await operator.lead(for_s=SETTLED_S)
        assert "DRAIN" not in operator.slurm.nodes.by_name["gpu-0"].states
        assert ["gpu-0"] == names_of(operator.api.pods)

    run(main)


def test_a_deleted_nodeset_goes_when_its_workers_jobs_have_ended() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-1")
        operator.api.change(
            "NodeSet",
            "gpu",
            metadata={
                **operator.api.of("NodeSet")["gpu"]["metadata"],
                "deletionTimestamp": "2026-01-01T00:00:00Z",
            },
        )
        await operator.lead(for_s=SETTLED_S)
        assert ["gpu-1"] == names_of(operator.api.pods)
        assert "slurm-operator: its NodeSet is deleted" == (
            operator.slurm.nodes.by_name["gpu-1"].reason
        )
        del operator.slurm.jobs[1]
        await operator.lead(for_s=SETTLED_S)
        assert {} == operator.api.pods
        assert {} == operator.api.of("NodeSet")

    run(main)


def test_a_nodeset_that_cannot_be_served_costs_only_itself() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        odd = node_set("odd", replicas=2)
        odd["spec"]["replicas"] = -1
        operator.api.put(odd)
        operator.api.put(node_set("bare", replicas=2, slurmd={}))
        named = {"spec": {"hostname": "gpu-"}}
        later = node_set("namesake", replicas=2, template=named)
        later["metadata"]["creationTimestamp"] = "2026-01-02T00:00:00Z"
        operator.api.put(later)
        operator.api.put(node_set(replicas=2))
        await operator.lead(for_s=SETTLED_S)

        assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)
        said = {
            name: operator.api.condition(name, "Accepted")
            for name in ("odd", "bare", "namesake", "gpu")
        }
        assert "True" == said.pop("gpu")["status"]
        assert {"False"} == {each["status"] for each in said.values()}
        assert "replicas" in said["odd"]["message"]
        assert "spec.slurmd.image: expected an image" == said["bare"]["message"]
        assert "NodeSet gpu" in said["namesake"]["message"]

        before = len(operator.trouble.writes)
        await operator.lead(for_s=SETTLED_S)
        assert [] == operator.trouble.writes[before:]

    run(main)


def test_a_nodeset_that_cannot_be_read_any_more_can_be_deleted() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        odd = node_set(replicas=2)
        odd["spec"]["replicas"] = -1
        odd["metadata"] |= {
            "finalizers": ["slurm-bridge.dev/workers"],
            "deletionTimestamp": "2026-01-01T00:00:00Z",
        }
        operator.api.put(odd)
        await operator.lead(for_s=SETTLED_S)
        assert {} == operator.api.of("NodeSet")

    run(main)


def test_somebody_elses_pod_of_that_name_is_named_and_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.create(
            {
                "kind": "Pod",
                "metadata": {"name": "gpu-0", "namespace": "slurm", "uid": "p"},
                "status": {},
            }
        )
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)

        assert "p" == operator.api.pods["gpu-0"]["metadata"]["uid"]
        assert "pod slurm/gpu-0 already exists" in operator.api.condition("gpu", "Ready")["message"]

    run(main)


def test_somebody_elses_drain_stays() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.slurm.nodes.by_name["gpu-0"] = Node(
            name="gpu-0", states={"IDLE", "DRAIN"}, reason="broken fan"
        )
        operator.api.put(node_set(replicas=1))
        await operator.lead(for_s=SETTLED_S)
        assert "broken fan" == operator.slurm.nodes.by_name["gpu-0"].reason
        assert 1 == operator.api.status("gpu")["slurmDrain"]

    run(main)
