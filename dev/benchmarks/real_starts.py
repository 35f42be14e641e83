"""`python -m benchmarks.real_starts`: how long a real container takes to start, plain and bridged, on one real node (root).

Pods are created one after the other, in turn, on an idle sandbox. A plain pod is placed by kube-scheduler on
the node that Slurm has, by an administrator's leave.
"""

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names

_NODE = "real-0"
_NAMESPACES = {"plain": {}, "bridged": {names.ENABLED_LABEL: "true"}}
_BREAK_GLASS = ("system:masters", "slurm-bridge:break-glass")
_PATIENCE_S = 60.0
_POLL_S = 0.005


def main(
    pods: Annotated[int, typer.Option(min=2, help="How many of each kind.")] = 20,
) -> None:
    """Create pods in turn, and compare how soon their containers run."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-starts-"))
    folder.chmod(0o755)
    try:
        with (
            Sandbox.up(folder, Options(nodes=0, plain_nodes=0, real_nodes=1)) as sandbox,
            Api(sandbox.user_kubeconfig("bench", *_BREAK_GLASS)) as administrator,
        ):
            found = _measure(administrator, pods)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for kind, times in found.items():
        p50, longest = statistics.median(times), max(times)
        typer.echo(f"{kind:8} CREATE to started: p50 {p50:.2f} s, longest {longest:.2f} s")
    more_s = statistics.median(found["bridged"]) - statistics.median(found["plain"])
    typer.echo(f"bridged takes {more_s:.2f} s more (goal 0.7)")


def _measure(api: Api, pods: int) -> dict[str, list[float]]:
    """Return the seconds until the containers ran, by kind of namespace."""
    for namespace, labels in _NAMESPACES.items():
        api.create("/api/v1/namespaces", {"metadata": {"name": namespace, "labels": labels}})
    time.sleep(2)  # for their service accounts
    found: dict[str, list[float]] = {kind: [] for kind in _NAMESPACES}
    for number in range(pods + 1):
        for kind, times in found.items():
            times.append(_start(api, kind, f"pod-{number}"))
    return {kind: times[1:] for kind, times in found.items()}  # the first finds cold caches


def _start(api: Api, namespace: str, name: str) -> float:
    """Create a pod, wait until its container runs, and remove it; return the seconds until it ran."""
    path = f"/api/v1/namespaces/{namespace}/pods"
    began_s = time.monotonic()
    api.create(path, _pod(name))
    while not _runs(api.get(f"{path}/{name}")):
        if time.monotonic() - began_s > _PATIENCE_S:
            raise TimeoutError(f"{namespace}/{name} did not start within {_PATIENCE_S:g} s")
        time.sleep(_POLL_S)
    taken_s = time.monotonic() - began_s
    api.delete(f"{path}/{name}", gracePeriodSeconds=1)
    while name in {item["metadata"]["name"] for item in api.get(path)["items"]}:
        time.sleep(0.1)
    return taken_s


def _runs(pod: dict[str, Any]) -> bool:
    statuses = pod["status"].get("containerStatuses", [])
    return bool(statuses) and "running" in statuses[0]["state"]


def _pod(name: str) -> dict[str, Any]:
    amounts = {"cpu": "100m", "memory": "64Mi"}
    container = {
        "name": "main",
        "image": "busybox",
        "imagePullPolicy": "IfNotPresent",
        "command": ["sleep", "600"],
        "resources": {"requests": amounts, "limits": amounts},
    }
    return {
        "metadata": {"name": name},
        "spec": {
            "containers": [container],
            "nodeSelector": {"kubernetes.io/hostname": _NODE},
            "tolerations": [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}],
        },
    }


if __name__ == "__main__":
    typer.run(main)
