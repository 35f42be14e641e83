"""What no node of Slurm's ever has enough of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model.devices import room
from bridge.domain.model.devices.room import Shape, Task
from bridge.domain.request import candidates
from bridge.domain.request.candidates import Pool
from slurmruntime.model.nodes import KubeNodeFacts, SlurmNodeFacts
from tests.make import placing as make
from tests.make.placing import MARK, term

NODE = Shape(8, 32 * 1024, "gpu:a100:4(S:0-1),nic:1,shard:8", ("bridge", "gpu"))

OURS = f"{MARK}&{make.NO_TAINTS}"


def task(cpus: int = 1, memory_mib: int = 1, gres: str = "", partitions: str = "") -> Task:
    named = tuple(partitions.split(",")) if partitions else ()
    return Task(cpus=cpus, memory_mib=memory_mib, gres=gres, partitions=named)


@pytest.mark.parametrize(
    ("asked", "lack"),
    [
        (task(cpus=9), "has 9 CPUs in Slurm (the largest has 8)"),
        (
            task(memory_mib=32 * 1024 + 1),
            "has 32769Mi of memory in Slurm (the largest has 32768Mi)",
        ),
        (task(gres="gres/gpu:99"), "has 99 gpu in Slurm (the largest has 4)"),
        (task(gres="gres/gpu:a100:5"), "has 5 gpu:a100 in Slurm (the largest has 4)"),
        (task(gres="gres/gpu:h100"), "has 1 gpu:h100 in Slurm (the largest has 0)"),
        (task(gres="gres/fpga"), "has 1 fpga in Slurm (the largest has 0)"),
        (task(gres="gres/gpu:4,gres/shard:9"), "has 9 shard in Slurm (the largest has 8)"),
        (task(partitions="debug"), "is in partition debug"),
        (task(partitions="debug,long"), "is in partition debug or long"),
    ],
)
def test_what_a_node_never_has_is_named_with_what_it_has(asked: Task, lack: str) -> None:
    assert lack == room.largest(room.too_small(asked, [NODE]).values())


@pytest.mark.parametrize(
    "asked",
    [
        task(8, 32 * 1024, "gres/gpu:a100:4,gres/nic,gres/shard:8", "debug,gpu"),
        task(gres="gres/gpu:4"),
        task(gres="gres/gpu"),
        task(),
    ],
)
def test_what_a_node_has_is_enough(asked: Task) -> None:
    assert {} == room.too_small(asked, [NODE])


@pytest.mark.parametrize(
    ("has", "asked"),
    [
        ("bandwidth:lustre:no_consume:4G", "gres/bandwidth:lustre:1"),
        ("mps:2K", "gres/mps:2048"),
        ("gpu:a100:2,gpu:h100:2", "gres/gpu:4"),
    ],
)
def test_a_form_that_cannot_be_judged_is_left_to_slurm(has: str, asked: str) -> None:
    node = NODE._replace(gres=has)

    assert {} == room.too_small(task(gres=asked), [node])


def test_what_slurm_did_not_say_is_no_lack() -> None:
    assert {} == room.too_small(task(cpus=8, memory_mib=9, partitions="gpu"), [Shape(0, 0, "", ())])


@given(st.text(max_size=60), st.text(max_size=60))
def test_no_text_is_too_odd(has: str, asked: str) -> None:
    room.too_small(task(gres=asked), [NODE._replace(gres=has)])


def test_digits_without_end_cost_nothing() -> None:
    node = NODE._replace(gres="gpu:" + "9" * 5000)

    assert len(room.too_small(task(gres="gres/gpu:1"), [node])) <= 1


def nodes(*found: tuple[KubeNodeFacts, SlurmNodeFacts]) -> Pool:
    return candidates.pool([kube for kube, _ in found], [slurm for _, slurm in found], make.CLUSTER)


BIG = (
    make.kube_node("big", labels={"zone": "a", "disk": "hdd"}),
    make.slurm_node("big", "zone=a", "disk=hdd", gres="gpu:4"),
)
SMALL = (
    make.kube_node("small", labels={"zone": "b", "disk": "ssd"}),
    make.slurm_node("small", "zone=b", "disk=ssd"),
)


def test_the_largest_of_the_nodes_that_suit_the_pod_counts() -> None:
    pool = nodes(BIG, SMALL)
    asked = task(gres="gres/gpu:2")

    anywhere = candidates.choose(make.pod(), pool, task=asked)
    assert OURS == anywhere.constraints
    there = candidates.choose(make.pod(node_selector={"zone": "a"}), pool, task=asked)
    assert f"{OURS}&zone=a" == there.constraints
    elsewhere = candidates.choose(make.pod(node_selector={"zone": "b"}), pool, task=asked)
    assert elsewhere.problem == (
        "none of the 1 nodes that suit the pod has 2 gpu in Slurm (the largest has 0)"
    )
    too_many = candidates.choose(make.pod(), pool, task=task(gres="gres/gpu:5"))
    assert too_many.problem == (
        "none of the 2 nodes that suit the pod has 5 gpu in Slurm (the largest has 4)"
    )


def test_labels_that_no_node_has_together_are_a_problem_and_not_an_expression() -> None:
    """Slurm knows each feature, takes the job, and ends it."""
    both = make.pod(node_selector={"zone": "a", "disk": "ssd"})

    assert (
        "none of the 2 nodes in Slurm both matches"
        in candidates.choose(both, nodes(BIG, SMALL)).problem
    )


def test_listed_names_leave_out_nodes_that_are_too_small() -> None:
    pod = make.pod(node_terms=(term(("zone", "Exists", "")),))

    found = candidates.choose(pod, nodes(BIG, SMALL), task=task(gres="gres/gpu:1"))

    assert ("big",) == found.required_nodes
