"""What Slurm granted, as it is written on pods."""

import json
from dataclasses import replace

import pytest

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity
from slurmruntime.values.ids import ClusterId, PodUid, SlurmNode, WorkloadKey

WHOSE = Identity(
    cluster=ClusterId("c"),
    kind="Pod",
    namespace="ns",
    name="train",
    key=WorkloadKey("u"),
    pods=(PodUid("u"),),
)
SMALL = Grant(
    name="train", user="alice", group="team", memory_mib_per_node=512, started_s=1795275332
)
LARGE = replace(
    SMALL,
    account="a",
    partition="p",
    qos="q",
    reservation="r",
    wckey="w",
    licenses="l:1",
    mcs_label="m",
    nodes=4,
    tasks=8,
    cpus_per_task=2,
    gres_per_node="gres/gpu:a100:2",
    time_limit_min=60,
)


GANG = replace(
    LARGE,
    memory_mib_per_node=0,
    memory_mib_per_cpu=64,
    gres_per_task="gres/gpu:1",
    layout="n1*3,n2",
)

TWO_SIZES = replace(SMALL, layout="n3", also=(GANG,))


@pytest.mark.parametrize(
    "granted",
    [SMALL, LARGE, GANG, TWO_SIZES],
    ids=["small", "large", "a gang's", "of two sizes"],
)
def test_what_was_written_is_read(granted: Grant) -> None:
    assert (replace(WHOSE, pods=()), granted) == grant.decode(grant.encode(WHOSE, granted))


def test_a_layout_says_how_many_tasks_each_node_has_in_slurms_order() -> None:
    slots = [SlurmNode(name) for name in ("n2", "n2", "n2", "n1", "n10", "n10")]
    written = grant.layout(slots)
    assert "n2*3,n1,n10*2" == written
    expected = [("n2", 3), ("n1", 1), ("n10", 2)]
    assert expected == list(replace(GANG, layout=written).tasks_on.items())
    assert {} == SMALL.tasks_on


def test_the_text_does_not_grow_with_the_workload() -> None:
    many = replace(WHOSE, pods=tuple(PodUid(f"pod-{number}") for number in range(1000)))

    assert grant.encode(WHOSE, LARGE) == grant.encode(many, LARGE)


def test_what_a_later_version_added_is_left_alone() -> None:
    document = json.loads(grant.encode(WHOSE, SMALL))
    document["grant"]["burst_buffer"] = {"size": 1}

    assert (replace(WHOSE, pods=()), SMALL) == grant.decode(json.dumps(document))


_SAID = json.loads(grant.encode(WHOSE, SMALL))["grant"]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"memory_mib_per_node": None}, id="no memory, which Slurm reads as all of it"),
        pytest.param({"cpus_per_task": "2"}, id="text for a number"),
        pytest.param({"tasks": True}, id="yes for a number"),
        pytest.param({"user": 0}, id="a number for text"),
        pytest.param({"memory_mib_per_node": 0}, id="no memory"),
        pytest.param({"layout": "n1*many"}, id="a layout that counts nothing"),
        pytest.param({"layout": "n1*0"}, id="a node without tasks"),
        pytest.param({"layout": "n1", "also": {}}, id="no list of components"),
        pytest.param({"layout": "n1", "also": ["n2"]}, id="a component that is none"),
        pytest.param({"also": [{**_SAID, "layout": "n2"}]}, id="a component that is nowhere"),
    ],
)
def test_what_is_damaged_is_not_guessed_at(change: dict[str, object]) -> None:
    document = json.loads(grant.encode(WHOSE, SMALL))
    document["grant"] |= change

    assert grant.decode(json.dumps(document)) is None


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", '{"identity":{},"grant":{}}'])
def test_what_we_never_wrote_is_not_read(text: str) -> None:
    assert grant.decode(text) is None
