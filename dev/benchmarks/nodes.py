"""What nodes cost: registering many at once, and keeping them while nothing changes.

    python -m benchmarks.nodes --nodes 1000

Counts come from the controllers' metrics, CPU from the kernel; the machine should be otherwise
idle.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.meter import Meter, Reading, between
from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names

_POLL_S = 0.2
_AT_ONCE = 16
_DEADLINE_S = 300.0


def main() -> None:
    """Measure and print the figures."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=1000)
    arguments.add_argument("--rest-s", type=float, default=60)
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        options = Options(nodes=1, plain_nodes=chosen.nodes, hurried=False)
        with Sandbox.up(Path(folder), options) as sandbox:
            measure(sandbox, rest_s=chosen.rest_s)


def measure(sandbox: Sandbox, *, rest_s: float) -> None:
    """Register all plain nodes; rest; let every kubelet report; cordon one and drain another."""
    nodes = sandbox.instance.options.plain_node_names
    meter = Meter(sandbox)
    before = meter.read()
    began = time.monotonic()
    each(sandbox, nodes, label)
    labelled_s = time.monotonic() - began
    until(lambda: in_slurm(sandbox) == len(nodes) + 1)
    registered_s = time.monotonic() - began
    until(lambda: in_service(sandbox) == len(nodes) + 1)
    said_s = time.monotonic() - began
    print(
        f"{len(nodes)} nodes labelled in {labelled_s:.1f} s; all in Slurm after {registered_s:.1f} s, "
        f"all say so after {said_s:.1f} s"
    )
    show("registering", before, meter.read())

    time.sleep(rest_s / 6)
    before = meter.read()
    time.sleep(rest_s)
    show(f"{rest_s:.0f} s in which nothing changes", before, meter.read())

    before = meter.read()
    each(sandbox, nodes, report)
    time.sleep(2)
    show("every kubelet has reported once", before, meter.read())

    began = time.monotonic()
    sandbox.admin.patch(f"/api/v1/nodes/{nodes[0]}", {"spec": {"unschedulable": True}})
    until(lambda: "drain" in sandbox.run("sinfo", "-h", "-N", "-n", nodes[0], "-o", "%T"))
    print(f"cordon to drain: {time.monotonic() - began:.2f} s (a look each {_POLL_S} s)")
    began = time.monotonic()
    sandbox.run("scontrol", "update", f"nodename={nodes[1]}", "state=drain", "reason=bench")
    until(lambda: says(sandbox, nodes[1]) == "Drained")
    print(f"drain to condition: {time.monotonic() - began:.2f} s")


def each(sandbox: Sandbox, nodes: tuple[str, ...], do: Callable[[Api, str], None]) -> None:
    """Call `do` for every node, some at a time."""

    def some(part: tuple[str, ...]) -> None:
        with Api(sandbox.kubeconfig) as api:
            for node in part:
                do(api, node)

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(some, [nodes[start::_AT_ONCE] for start in range(_AT_ONCE)]))


def label(api: Api, node: str) -> None:
    """Label a node, as an administrator does."""
    metadata = {
        "labels": {names.EXTERNAL_NODE_LABEL: "true"},
        "annotations": {names.PARTITIONS_ANNOTATION: "slurm-bridge"},
    }
    api.patch(f"/api/v1/nodes/{node}", {"metadata": metadata})


def report(api: Api, node: str) -> None:
    """Report as a kubelet does every five minutes even if nothing has changed."""
    now = SystemClock().now().astimezone(UTC)
    heartbeat = {"type": "Ready", "lastHeartbeatTime": datetime.isoformat(now, timespec="seconds")}
    api.request(
        "PATCH",
        f"/api/v1/nodes/{node}/status",
        {"status": {"conditions": [heartbeat]}},
        content_type="application/strategic-merge-patch+json",
    )


def in_slurm(sandbox: Sandbox) -> int:
    """Count Slurm's nodes."""
    return len(sandbox.run("sinfo", "-h", "-N", "-o", "%N").split())


def in_service(sandbox: Sandbox) -> int:
    """Count the nodes whose condition says they are in service."""
    listed = sandbox.admin.get("/api/v1/nodes")["items"]
    return sum(_reason(node) == "InService" for node in listed)


def says(sandbox: Sandbox, node: str) -> str:
    """Return a node's own condition."""
    return _reason(sandbox.admin.get(f"/api/v1/nodes/{node}"))


def _reason(node: dict[str, Any]) -> str:
    said = (
        c for c in node["status"].get("conditions", []) if c["type"] == names.SLURM_STATE_CONDITION
    )
    return next((str(c["reason"]) for c in said), "")


def until(is_so: Callable[[], bool]) -> None:
    """Poll until it is so.

    Raises:
        TimeoutError: it did not happen.
    """
    ends_at = time.monotonic() + _DEADLINE_S
    while not is_so():
        if time.monotonic() > ends_at:
            raise TimeoutError(is_so)
        time.sleep(_POLL_S)


def show(what: str, before: Reading, after: Reading) -> None:
    """Print what the controllers did and used meanwhile."""
    usage = between(before, after)
    print(f"{what}:")
    for part in ("controllers", "slurmrestd", "slurmctld"):
        print(f"  CPU {part}: {usage.cpu_s[part]:.2f} s")
    for call, count in sorted(usage.calls.items()):
        if call.startswith("controllers"):
            print(f"  {call}: {count}")


if __name__ == "__main__":
    main()
