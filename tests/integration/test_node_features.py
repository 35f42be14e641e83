"""Labels, GPUs and topology as Slurm shows them; pods land by them; and a Slurm that has lost everything gets it all back."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.integration.machines import PATIENCE_S, Machine
from tests.integration.worlds import Worlds
from tests.servers import fresh_namespace, running_sandbox, wait_until

_TOPOLOGY = """\
- topology: topo-switch
  cluster_default: true
  tree:
    switches:
      - {switch: root, children: "s[0-1]"}
      - {switch: s0}
      - {switch: s1}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    """Two nodes, labels disk and zone published, and switches s0 and s1."""
    options = Options(nodes=2, settings=("controllers.node_features=[disk, zone]",))
    with running_sandbox(options) as sandbox:
        topology = Path(sandbox.slurm_conf).parent / "topology.yaml"
        topology.write_text(_TOPOLOGY)
        topology.chmod(0o644)
        for node in machines(sandbox):
            node.label("false")
            node.await_not_in_slurm()
        sandbox.restart("slurmctld")
        for number, node in enumerate(machines(sandbox)):
            node.annotate(names.TOPOLOGY_ANNOTATION, f"topo-switch:s{number}")
            node.label("ssd" if number else "hdd", key="disk")
            node.label(f"z{number}", key="zone")
            node.label("true")
            node.await_in_service()
        yield sandbox


@pytest.fixture
def worlds(sandbox: Sandbox) -> Iterator[Worlds]:
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as name:
        worlds = Worlds(sandbox, name)
        yield worlds
        worlds.clear()


def machines(sandbox: Sandbox) -> tuple[Machine, Machine]:
    first, second = (Machine(sandbox, name, sandbox) for name in ("node-0", "node-1"))
    return first, second


def described(node: Machine) -> tuple[str, str, str]:
    """Features without our marks, GPUs and topology, as scontrol shows them."""
    shown = node.in_slurm()
    features = shown["AvailableFeatures"].split(",")
    ours = ",".join(feature for feature in features if not feature.startswith("slurm-bridge"))
    return ours, shown["Gres"], shown.get("Topology", "")


def test_they_show_in_slurm(sandbox: Sandbox) -> None:
    first, second = machines(sandbox)

    assert ("disk=hdd,zone=z0", "gpu:4", "topo-switch:s0") == described(first)
    assert ("disk=ssd,zone=z1", "gpu:4", "topo-switch:s1") == described(second)
    listed = sandbox.run("sinfo", "-h", "-N", "-n", "node-1", "-o", "%f %G")
    assert "disk=ssd,zone=z1 gpu:4" in listed
    assert "s0" in sandbox.run("scontrol", "show", "topology", "node=node-0")


def test_a_selector_is_a_constraint(worlds: Worlds) -> None:
    uid = worlds.submit("selects", nodeSelector={"disk": "ssd"})
    pod = worlds.await_phase("selects", "Running")

    assert "node-1" == pod["spec"]["nodeName"]
    (job,) = worlds.live(uid)
    assert "disk=ssd" in worlds.scontrol("--oneliner", "show", "job", str(job.id))


def test_the_users_constraints_count(worlds: Worlds) -> None:
    asks = {f"{names.REQUEST_PREFIX}constraints": "zone=z1"}
    worlds.submit("asks", annotations=asks)

    assert "node-1" == worlds.await_phase("asks", "Running")["spec"]["nodeName"]


def test_a_node_moves_in_the_topology_in_place(sandbox: Sandbox, worlds: Worlds) -> None:
    first, _ = machines(sandbox)
    worlds.submit("stays", nodeSelector={"disk": "hdd"})
    worlds.await_phase("stays", "Running")

    first.annotate(names.TOPOLOGY_ANNOTATION, "topo-switch:s1")
    first.await_in_slurm(lambda node: node.get("Topology") == "topo-switch:s1")
    first.annotate(names.TOPOLOGY_ANNOTATION, "topo-switch:s0")
    first.await_in_slurm(lambda node: node.get("Topology") == "topo-switch:s0")
    assert "DRAIN" not in first.in_slurm()["State"]


def test_a_slurm_that_has_lost_everything_gets_its_nodes_back(
    sandbox: Sandbox, worlds: Worlds
) -> None:
    """No pod dies of it; the pod's placeholder is for the restore to bring back."""
    uid = worlds.submit("survivor", nodeSelector={"disk": "ssd"})
    worlds.await_phase("survivor", "Running")
    before = [described(node) for node in machines(sandbox)]

    sandbox.restart("slurmctld", signal="KILL", wipe=True)

    wait_until(
        lambda: all(node.in_slurm() for node in machines(sandbox)), PATIENCE_S, sandbox=sandbox
    )
    assert before == [described(node) for node in machines(sandbox)]
    pod = worlds.await_pod("survivor", bool)
    assert (uid, "Running") == (pod["metadata"]["uid"], pod["status"]["phase"])
    assert "deletionTimestamp" not in pod["metadata"]
