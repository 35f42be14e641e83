"""`python -m benchmarks.looking`.

The cost of scrapes, `why`, `queue` and `doctor` with many pods in the caches.

The pods carry a foreign scheduling gate besides ours: every cache has them, and Slurm has nothing
to do with them yet. One more pod waits in Slurm; the commands are about that one.
"""

import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from benchmarks.meter import SERVICES, cpu_s
from benchmarks.results import spread
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names

_NAMESPACE = "looking"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_GATE = {"name": "example.test/later"}
_AT_ONCE = 8
_SCRAPES = 50
_RUNS = 10
"""Of each command: the best shows what it costs, the others what else the machine did."""
_PATIENCE_S = 900.0
_POLL_S = 0.5


def main(*, pods: Annotated[int, typer.Option(help="Pods in the caches.", min=1)] = 10_000) -> None:
    """Measure on a sandbox of its own."""
    console = Console()
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    try:
        with Sandbox.up(folder, Options(hurried=False)) as sandbox:
            _fill(sandbox, pods)
            console.print(f"{pods} pods in the caches")
            for service in SERVICES:
                console.print(_scrapes(sandbox, service))
            commands = (("why", f"{_NAMESPACE}/waits"), ("queue", "-n", _NAMESPACE), ("doctor",))
            for command in commands:
                console.print(_command(sandbox, *command))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(sandbox: Sandbox, count: int) -> None:
    """Create the pods, and wait until the one in Slurm reports why it waits."""
    labels = {names.ENABLED_LABEL: "true"}
    sandbox.admin.create("/api/v1/namespaces", {"metadata": {"name": _NAMESPACE, "labels": labels}})
    _until(lambda: _is_there(sandbox, f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"))
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        bodies = [_pod(f"p{number}", [_GATE]) for number in range(count)]
        list(pool.map(lambda body: sandbox.admin.create(_PODS, body), bodies))
    sandbox.run("scontrol", "update", "partition=slurm-bridge", "state=down")
    sandbox.admin.create(_PODS, _pod("waits", []))
    _until(lambda: "PartitionDown" in str(sandbox.admin.get(f"{_PODS}/waits")["status"]))


def _pod(name: str, gates: list[dict[str, str]]) -> dict[str, Any]:
    containers = [{"name": "main", "image": "none"}]
    spec = {"containers": containers, "schedulingGates": gates}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def _is_there(sandbox: Sandbox, path: str) -> bool:
    return bool(sandbox.admin.get(path)["items"])


def _until(condition: Any) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            sys.exit(f"not so after {_PATIENCE_S:.0f} s")
        time.sleep(_POLL_S)


def _scrapes(sandbox: Sandbox, service: str) -> str:
    pid = sandbox.status()[service].pid or 0
    url = f"{sandbox.instance.url(f'{service}-health')}/metrics"
    took_s: list[float] = []
    size = 0
    with httpx.Client(trust_env=False, timeout=60) as client:
        before_s = cpu_s(pid)
        for _ in range(_SCRAPES):
            began = time.perf_counter()
            size = len(client.get(url).raise_for_status().content)
            took_s.append(time.perf_counter() - began)
        used_ms = 1000 * (cpu_s(pid) - before_s) / _SCRAPES
    found = spread(took_s)
    return (
        f"scrape of the {service}: {used_ms:.1f} ms CPU, p50 {1000 * found.p50_s:.1f} ms,"
        f" longest {1000 * found.longest_s:.1f} ms, {size >> 10} KiB"
    )


def _command(sandbox: Sandbox, *arguments: str) -> str:
    runs = [_run(sandbox, *arguments) for _ in range(_RUNS)]
    took_s, used_s = (min(each) for each in zip(*runs, strict=True))
    return f"{arguments[0]}: {took_s:.2f} s, its own CPU {used_s:.2f} s (best of {_RUNS})"


def _run(sandbox: Sandbox, *arguments: str) -> tuple[float, float]:
    """Run a command; return how long it took, and its CPU time, in seconds."""
    code = "from slurmcli.plugin import main; main()"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env=sandbox.env,
        stdout=subprocess.DEVNULL,
        check=False,
    )
    took_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return took_s, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    typer.run(main)
