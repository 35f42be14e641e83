"""The servers of a sandbox do what their users need."""

from sandbox.client import Sandbox


def test_slurm_has_its_nodes(slurm: Sandbox) -> None:
    assert slurm.run("sinfo", "-h", "-o", "%D %T").split() == ["4", "idle"]


def test_nodes_are_ready(control_plane: Sandbox, namespace: str) -> None:
    assert control_plane.kubectl("get", "nodes", "-o", "name").split() == [
        *(f"node/node-{number}" for number in range(4)),
        "node/plain-0",
    ]
