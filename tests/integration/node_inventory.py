"""ConfigMap `slurm-config`, and what the controllers make of it on a node."""

from typing import Any

from sandbox.api import ApiError
from sandbox.client import Sandbox
from slurmjobs.sylabs.inventory import PREFIX
from slurmruntime.values import names
from tests.servers import wait_until

_NODE = "/api/v1/nodes/old-node"
_MAPS = "/api/v1/namespaces/default/configmaps"
_OURS = "127.0.0.1"
"""Where the sandbox has slurmrestd."""


def written_and_taken_away(sandbox: Sandbox, patience_s: float) -> None:
    """See labels and capacities come, come back, and go when the entry names another Slurm."""
    admin = sandbox.admin
    own = {PREFIX + "own": "mine"}
    body = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "old-node", "labels": own}}
    admin.create("/api/v1/nodes", body)
    admin.create(_MAPS, _config(_OURS))
    try:
        labels = {
            PREFIX + "cuda": "10.0",
            PREFIX + "workload-manager": "slurm",
            PREFIX + "integration-type": "ssh",
            **own,
        }
        _becomes(sandbox, patience_s, labels, {PREFIX + "cpu": "2"})
        # A kubelet that starts again drops what it does not know.
        admin.patch(f"{_NODE}/status", {"status": {"capacity": {PREFIX + "cpu": None}}})
        _becomes(sandbox, patience_s, labels, {PREFIX + "cpu": "2"})
        admin.patch(f"{_MAPS}/slurm-config", _config("login.elsewhere:22"))
        _becomes(sandbox, patience_s, own, {})
        wait_until(lambda: "login.elsewhere" in _notes(sandbox), patience_s, sandbox=sandbox)
        wait_until(lambda: not _is_marked(sandbox), patience_s, sandbox=sandbox)
    finally:
        for path in (f"{_MAPS}/slurm-config", _NODE):
            admin.delete(path)


def _config(address: str) -> dict[str, Any]:
    text = (
        f"old-node:\n  slurm_ssh: {address}\n  resources: {{cpu: 2}}\n  labels:\n    cuda: 10.0\n"
    )
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "slurm-config"},
        "data": {"config": text},
    }


def _becomes(
    sandbox: Sandbox, patience_s: float, labels: dict[str, str], capacity: dict[str, str]
) -> None:
    def found() -> tuple[dict[str, str], dict[str, str]]:
        node = sandbox.admin.get(_NODE)
        return _ours(node["metadata"]["labels"]), _ours(node["status"].get("capacity", {}))

    wait_until(lambda: found() == (labels, capacity), patience_s, sandbox=sandbox)


def _is_marked(sandbox: Sandbox) -> bool:
    """The note of what the controllers wrote, which goes after all of that."""
    node = sandbox.admin.get(_NODE)
    return names.INVENTORY_ANNOTATION in node["metadata"].get("annotations", {})


def _ours(found: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in found.items() if name.startswith(PREFIX)}


def _notes(sandbox: Sandbox) -> str:
    path = "/api/v1/namespaces/default/events"
    selected = "involvedObject.kind=Node,involvedObject.name=old-node"
    try:
        found = sandbox.admin.get(path, fieldSelector=selected)["items"]
    except ApiError:
        return ""
    return " ".join(each["message"] for each in found)
