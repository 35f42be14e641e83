"""Slurm's topologies on external nodes: gangs keep to one switch or block, and ranks follow the switches.

The nodes of a switch, and of a block, are not neighbours by name: whoever went by names would be told.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration import gang_pods
from tests.integration.machines import Machine
from tests.integration.worlds import Worlds
from tests.servers import fresh_namespace, running_sandbox

_TOPOLOGIES = """\
- topology: topo-switch
  cluster_default: true
  tree:
    switches:
      - {switch: root, children: "s[0-1]"}
      - {switch: s0}
      - {switch: s1}
- topology: topo-block
  cluster_default: false
  block:
    block_sizes: [2, 4]
    blocks:
      - {block: b0}
      - {block: b1}
"""
_BLOCKS = "blocks"
"""A partition of the same nodes whose topology is the blocks."""
_CONF = f"""
PartitionName={_BLOCKS} Nodes=slurm-bridge Topology=topo-block MaxTime=INFINITE State=UP
"""
CPUS = 2
OPTIONS = Options(nodes=4, plain_nodes=0, node_cpus=CPUS, node_gpus=0)
PARTS = {
    name: f"topo-switch:s{n % 2},topo-block:b{n % 2}" for n, name in enumerate(OPTIONS.node_names)
}
"""node-0 and node-2 are on one switch and in one block, node-1 and node-3 on and in the other."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        nodes = [Machine(sandbox, name, sandbox) for name in OPTIONS.node_names]
        for node in nodes:
            node.label("false")
            node.await_not_in_slurm()
        conf = Path(sandbox.slurm_conf)
        topology = conf.parent / "topology.yaml"
        topology.write_text(_TOPOLOGIES)
        topology.chmod(0o644)
        conf.write_text(conf.read_text() + _CONF)
        sandbox.restart("slurmctld")
        for node in nodes:
            node.annotate(names.TOPOLOGY_ANNOTATION, PARTS[node.name])
            node.label("true")
            node.await_in_service()
        yield sandbox


@pytest.fixture
def worlds(sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        yield worlds
        worlds.clear()


def gang(worlds: Worlds, name: str, size: int, notes: Mapping[str, str]) -> list[str]:
    """Run a gang whose pods take a node each; returns their nodes by rank."""
    for number in range(size):
        gang_pods.submit(
            worlds, f"{name}-{number}", group=name, size=size, cpus=str(CPUS), notes=notes
        )
    pods = [worlds.await_phase(f"{name}-{number}", "Running") for number in range(size)]
    by_rank = {int(gang_pods.note(pod, names.RANK_ANNOTATION)): pod for pod in pods}
    return [by_rank[rank]["spec"]["nodeName"] for rank in range(size)]


def groups(nodes: list[str]) -> list[int]:
    """The number of the switch, or block, of each node."""
    return [int(node.removeprefix("node-")) % 2 for node in nodes]


def test_nodes_are_on_their_switches_and_in_their_blocks(sandbox: Sandbox) -> None:
    shown = {
        name: Machine(sandbox, name, sandbox).in_slurm()["Topology"] for name in OPTIONS.node_names
    }

    assert {name: set(part.split(",")) for name, part in PARTS.items()} == {
        name: set(part.split(",")) for name, part in shown.items()
    }
    (line,) = [
        splitline
        for splitline in sandbox.run("scontrol", "show", "topology", "topo-block").splitlines()
        if "BlockName=b1" in splitline
    ]
    assert "Nodes=node-[1,3]" in line


def test_a_gang_that_fits_on_one_switch_is_on_one(worlds: Worlds) -> None:
    asks = {f"{names.REQUEST_PREFIX}switches": "1"}

    assert 1 == len(set(groups(gang(worlds, "pair", 2, asks))))


def test_neighbouring_ranks_of_a_gang_over_two_switches_are_on_one_switch(worlds: Worlds) -> None:
    """Which the order of its job's nodes, for external nodes, does not see to."""
    nodes = gang(worlds, "all", 4, {})

    assert groups(nodes) in ([0, 0, 1, 1], [1, 1, 0, 0])
    for number in range(4):
        pod = worlds.pod(f"all-{number}")
        assert pod is not None
        assert nodes == gang_pods.note(pod, names.NODELIST_ANNOTATION).split(",")
    (job,) = worlds.live(gang_pods.uid_of(worlds, "all"))
    shown = worlds.scontrol("--oneliner", "show", "job", str(job.id)).partition(" NodeList=")[2]
    assert sorted(nodes) == sorted(worlds.scontrol("show", "hostnames", shown.split()[0]).split())


def test_a_member_that_is_replaced_after_its_node_moved_keeps_its_rank_and_node(
    sandbox: Sandbox, worlds: Worlds
) -> None:
    nodes = gang(worlds, "moved", 4, {})
    before = worlds.await_phase("moved-1", "Running")
    rank = int(gang_pods.note(before, names.RANK_ANNOTATION))
    moved = Machine(sandbox, nodes[0], sandbox)
    elsewhere = PARTS[next(name for name in nodes if PARTS[name] != PARTS[moved.name])]
    moved.annotate(names.TOPOLOGY_ANNOTATION, elsewhere)
    try:
        moved.await_in_slurm(
            lambda node: set(node["Topology"].split(",")) == set(elsewhere.split(","))
        )
        worlds.delete("moved-1")
        worlds.await_gone("moved-1")
        gang_pods.submit(worlds, "moved-new", group="moved", size=4, cpus=str(CPUS), notes={})
        after = worlds.await_phase("moved-new", "Running")
    finally:
        moved.annotate(names.TOPOLOGY_ANNOTATION, PARTS[moved.name])
        moved.await_in_slurm(
            lambda node: set(node["Topology"].split(",")) == set(PARTS[moved.name].split(","))
        )

    assert str(rank) == gang_pods.note(after, names.RANK_ANNOTATION)
    assert nodes[rank] == after["spec"]["nodeName"]
    assert nodes == gang_pods.note(after, names.NODELIST_ANNOTATION).split(",")


def test_a_gang_that_fits_into_a_block_is_in_one(worlds: Worlds) -> None:
    asks = {f"{names.REQUEST_PREFIX}partition": _BLOCKS}
    nodes = gang(worlds, "block", 2, asks)

    assert 1 == len(set(groups(nodes)))
    (job,) = worlds.live(gang_pods.uid_of(worlds, "block"))
    shown = worlds.scontrol("--oneliner", "show", "job", str(job.id))
    assert f"Partition={_BLOCKS}" in shown


def test_a_node_moves_to_another_block_in_place(sandbox: Sandbox, worlds: Worlds) -> None:
    node = Machine(sandbox, "node-3", sandbox)
    worlds.submit("stays", nodeSelector=node.selector)
    worlds.await_phase("stays", "Running")

    for wanted in ("topo-switch:s1,topo-block:b0", PARTS[node.name]):
        node.annotate(names.TOPOLOGY_ANNOTATION, wanted)
        node.await_in_slurm(
            lambda found, wanted=wanted: set(found["Topology"].split(",")) == set(wanted.split(","))  # type: ignore[misc]
        )
    assert "DRAIN" not in node.in_slurm()["State"]
