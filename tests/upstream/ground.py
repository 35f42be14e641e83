"""Real nodes for other people's tests: some stay with Kubernetes, Slurm has the others."""

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.servers import wait_until

PLAIN = ("real-0", "real-1")
"""Kubernetes' own."""
_FREED_S = 60.0


def keep_for_kubernetes(sandbox: Sandbox) -> None:
    """Take the plain nodes out of Slurm, and wait until Kubernetes has them for itself."""
    for node in PLAIN:
        sandbox.kubectl("label", "node", node, f"{names.EXTERNAL_NODE_LABEL}-")
    wait_until(lambda: not _taints(sandbox), _FREED_S, sandbox=sandbox)


def _taints(sandbox: Sandbox) -> list[str]:
    nodes = (sandbox.admin.get(f"/api/v1/nodes/{name}") for name in PLAIN)
    return [taint["key"] for node in nodes for taint in node["spec"].get("taints", [])]
