"""What of `slurm-config` is written on nodes, step by step, whatever is cut off in between."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slurmjobs.sylabs import inventory, slurm_config
from slurmjobs.sylabs.inventory import Inventory, InventoryNode, Label, Measure
from slurmjobs.sylabs.slurm_config import NodeEntry

PUBLISHED = """\
minikube:
  slurm_local: https://my.slurm:6820
  resources:
    cpu: 2
  labels:
    cuda: 10.0
    containers: singularity
"""
OURS = inventory.hosts(["http://My.Slurm.:6820/"])
NODE = InventoryNode(name="minikube", uid="1")


def carried_out(node: InventoryNode, action: Label | Measure) -> InventoryNode:
    """The node as the API server has it then."""
    if isinstance(action, Measure):
        capacity = {**node.capacity, **action.capacity}
        return replace(
            node, capacity={name: text for name, text in capacity.items() if text is not None}
        )
    labels = {**node.labels, **action.labels}
    return replace(
        node,
        labels={name: text for name, text in labels.items() if text is not None},
        written=action.written or "",
    )


def settled(node: InventoryNode, want: Inventory) -> InventoryNode:
    for _ in range(3):
        action = inventory.step(node, want)
        if action is None:
            return node
        node = carried_out(node, action)
    assert inventory.step(node, want) is None
    return node


def entry(text: str = PUBLISHED) -> NodeEntry:
    return slurm_config.read(text).nodes["minikube"]


def test_the_published_configuration_is_written_with_its_prefix() -> None:
    node = settled(NODE, inventory.desired(entry(), OURS))

    assert node.labels == {
        "slurm.sylabs.io/cuda": "10.0",
        "slurm.sylabs.io/containers": "singularity",
        "slurm.sylabs.io/workload-manager": "slurm",
        "slurm.sylabs.io/integration-type": "local",
    }
    assert {"slurm.sylabs.io/cpu": "2"} == node.capacity
    assert not inventory.complaint(entry(), OURS)


def test_what_is_written_is_noted_before_and_taken_away_with_its_entry() -> None:
    want = inventory.desired(entry(), OURS)
    first = inventory.step(NODE, want)
    assert isinstance(first, Label)
    assert "slurm.sylabs.io/cpu" in (first.written or "")

    mine = replace(
        settled(NODE, want), labels={**settled(NODE, want).labels, "slurm.sylabs.io/own": "x"}
    )
    left = settled(mine, inventory.desired(None, OURS))
    assert ({"slurm.sylabs.io/own": "x"}, {}, "") == (left.labels, left.capacity, left.written)


def test_a_capacity_that_a_kubelet_dropped_is_written_again() -> None:
    want = inventory.desired(entry(), OURS)
    node = settled(NODE, want)

    assert Measure({"slurm.sylabs.io/cpu": "2"}) == inventory.step(replace(node, capacity={}), want)
    assert inventory.step(replace(node, capacity={"slurm.sylabs.io/cpu": "2k"}), want)
    assert not inventory.step(replace(node, capacity={"slurm.sylabs.io/cpu": "2000m"}), want)


@pytest.mark.parametrize("address", ["other.slurm:6820", "ssh://other.slurm", "my.slurm.example"])
@pytest.mark.parametrize("key", ["slurm_local", "slurm_ssh", "slurm", "red_box_addr"])
def test_an_entry_for_another_slurm_writes_nothing_and_is_told(key: str, address: str) -> None:
    other = entry(PUBLISHED.replace("slurm_local: https://my.slurm:6820", f"{key}: {address}"))
    before = settled(NODE, inventory.desired(entry(), OURS))
    after = settled(before, inventory.desired(other, OURS))

    assert ({}, {}) == (after.labels, after.capacity)
    assert f"this node's Slurm is {address}" in inventory.complaint(other, OURS)
    assert "sylabs.addresses" in inventory.complaint(other, OURS)


@pytest.mark.parametrize(
    "address",
    ["my.slurm", "MY.SLURM:22", "vagrant@my.slurm:2222", "http://my.slurm.:8080/v1", " my.slurm "],
)
def test_our_slurm_is_known_however_its_address_is_written(address: str) -> None:
    assert inventory.hosts([address]) == {"my.slurm"}
    assert inventory.hosts(["[fe80::1]:22", "fe80::1"]) == {"fe80::1"}


def test_all_faults_of_a_node_come_at_once_and_the_rest_of_it_holds() -> None:
    odd = entry(
        "minikube:\n  slurm_local: a\n  slurm_ssh: b\n  resources: {cpu: -1, gpu: 2}\n"
        "  labels: {'a b': x, c: [y], d: 'no way', ok: yes}\n"
    )

    assert [
        "slurm_local: expected slurm_local or slurm_ssh, found slurm_local and slurm_ssh",
        "labels[a b]: expected up to 63 letters, digits, '-', '_' and '.'",
        "labels[c]: expected up to 63 letters, digits, '-', '_' and '.' as its value",
        "labels[d]: expected up to 63 letters, digits, '-', '_' and '.' as its value",
        "resources[cpu]: expected a whole number of at most 18 digits",
    ] == [fault.text for fault in odd.faults]
    assert ({"ok": "yes"}, {"gpu": 2}) == (odd.labels, odd.resources)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "it is not YAML"),
        ("- a", "expected a map of nodes"),
        ("[" * 5_000, "expected at most 16 brackets within brackets"),
        ("x" * (slurm_config.LONGEST + 1), "expected at most"),
        ("- " * 5_000, "it is not YAML"),
        ("\0", "it is not YAML"),
        ("\ud800: {}", "it is not YAML"),
    ],
    ids=["cut-off", "list", "deep", "long", "deep without brackets", "nul", "surrogate"],
)
def test_what_is_no_configuration_is_told(text: str, said: str) -> None:
    assert said in slurm_config.read(text).fault


_PIECES = ("minikube:", "\n", "  ", "labels:", "resources:", "slurm_local: my.slurm", "a: 1", "[")


@settings(max_examples=300, deadline=None)
@given(
    text=st.text(max_size=60) | st.lists(st.sampled_from(_PIECES)).map("".join),
    note=st.text(max_size=30)
    | st.sampled_from(["[]", "null", '{"labels":7}', '{"labels":["x",1]}']),
    labels=st.dictionaries(st.sampled_from(["slurm.sylabs.io/a", "slurm.sylabs.io/b"]), st.text()),
    capacity=st.dictionaries(st.just("slurm.sylabs.io/a"), st.text(max_size=5)),
)
def test_whatever_stands_there_comes_to_rest_in_three_steps(
    text: str, note: str, labels: dict[str, str], capacity: dict[str, str]
) -> None:
    read = slurm_config.read(text)
    node = InventoryNode(name="minikube", uid="1", labels=labels, capacity=capacity, written=note)
    want = inventory.desired(read.nodes.get("minikube"), OURS)
    after = settled(node, want)

    assert want.labels.items() <= after.labels.items()
    assert want.resources.keys() <= after.capacity.keys()
    gone = settled(after, Inventory())
    assert not gone.labels.keys() & want.labels.keys()
    assert not gone.capacity.keys() & want.resources.keys()


_NAMES = st.sampled_from(["a", "b", "c"])
_INVENTORIES = st.builds(
    Inventory,
    st.dictionaries(_NAMES.map(inventory.PREFIX.__add__), st.sampled_from("xy")),
    st.dictionaries(_NAMES.map(inventory.PREFIX.__add__), st.integers(0, 3)),
)


@settings(max_examples=300, deadline=None)
@given(wants=st.lists(st.tuples(_INVENTORIES, st.integers(0, 3)), max_size=6))
def test_wherever_it_is_cut_off_nothing_of_ours_is_left_behind(
    wants: list[tuple[Inventory, int]],
) -> None:
    node = NODE
    for want, steps in wants:
        for _ in range(steps):
            if action := inventory.step(node, want):
                node = carried_out(node, action)
    node = settled(node, Inventory())

    assert ({}, {}, "") == (node.labels, node.capacity, node.written)
