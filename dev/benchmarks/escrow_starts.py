"""`python -m benchmarks.escrow_starts`: how soon a placeholder's start is acted upon, with slurmctld's hint and by polling alone.

Pods are created one after the other on KWOK nodes. Each placeholder is held until polling has slowed down, then released:
so Slurm starts it at a moment that has nothing to do with our readings. slurmctld's log says when the job was running;
the extender's log says when the pod had its node. All on this machine's clock.
"""

import json
import os
import re
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sandbox import escrow
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names

_NAMESPACE = "starts"
_PATIENCE_S = 60.0
_POLL_S = 0.02
_CALM_S = 4.0
"""Polling alone has slowed down by then."""
_RUNS = r"\[([-0-9T:.]+)\] prolog_running_decr: Configuration for JobId={job} is complete"


def main(
    pods: Annotated[int, typer.Option(min=3, help="How many each way.")] = 20,
) -> None:
    """Release held placeholders, and compare how soon their pods have a node."""
    typer.echo(f"load before: {os.getloadavg()[0]:.1f}, processors: {os.cpu_count()}")
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-escrow-"))
    folder.chmod(0o755)
    found: dict[str, list[float]] = {}
    try:
        options = Options(nodes=4, plain_nodes=0, escrow=True, hurried=False)
        with Sandbox.up(folder, options) as sandbox:
            labels = {names.ENABLED_LABEL: "true"}
            metadata = {"name": _NAMESPACE, "labels": labels}
            sandbox.admin.create("/api/v1/namespaces", {"metadata": metadata})
            time.sleep(2)  # for its service account
            # Without URLs the script ends at once and tells nobody; slurmctld writes the same log.
            for way, changed in {"polling": {"URLS": ""}, "escrow": {}}.items():
                escrow.configure(sandbox.instance, **changed)
                found[way] = _measure(sandbox, way, pods)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for way, times in found.items():
        p50_ms, longest_ms = 1000 * statistics.median(times), 1000 * max(times)
        typer.echo(f"{way:7} job runs to node: p50 {p50_ms:.0f} ms, longest {longest_ms:.0f} ms")
    typer.echo(f"load after: {os.getloadavg()[0]:.1f}")


def _measure(sandbox: Sandbox, way: str, pods: int) -> list[float]:
    """Return the seconds from when slurmctld had a job running until the extender had given its pod the node."""
    moments = [_start(sandbox, f"{way}-{number}") for number in range(pods)]
    return [(placed - runs).total_seconds() for runs, placed in moments]


def _start(sandbox: Sandbox, name: str) -> tuple[datetime, datetime]:
    """Return when its job ran, and when the pod had its node."""
    path = f"/api/v1/namespaces/{_NAMESPACE}/pods"
    annotations = {"slurmjob.slinky.slurm.net/hold": "true"}
    amounts = {"cpu": "1", "memory": "64Mi"}
    container = {
        "name": "main",
        "image": "x",
        "resources": {"requests": amounts, "limits": amounts},
    }
    body = {
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [container]},
    }
    sandbox.admin.create(path, body)
    job = _await(lambda: _held_job(sandbox), "no placeholder")
    time.sleep(_CALM_S)
    sandbox.run("scontrol", "release", job)
    _await(lambda: sandbox.admin.get(f"{path}/{name}")["spec"].get("nodeName", ""), "no node")
    sandbox.admin.delete(f"{path}/{name}", gracePeriodSeconds=0)
    return _moment(sandbox, _RUNS, job), _placed_at(sandbox, job)


def _held_job(sandbox: Sandbox) -> str:
    return sandbox.run("squeue", "-h", "--states=PENDING", "-o", "%i").strip()


def _moment(sandbox: Sandbox, pattern: str, job: str) -> datetime:
    log = sandbox.instance.log("slurmctld")

    def told() -> str:
        match = re.search(pattern.format(job=job), log.read_text())
        return match[1] if match else ""

    # It is written late.
    text = _await(told, f"slurmctld's log does not tell of job {job}")
    return datetime.fromisoformat(text).astimezone(UTC)


def _placed_at(sandbox: Sandbox, job: str) -> datetime:
    """Return when the extender had removed the pod's gate."""
    for line in sandbox.instance.log("extender").read_text().splitlines():
        said = json.loads(line) if line.startswith("{") else {}
        if said.get("event") == "pod.acted" and str(said.get("job_id")) == job and "node" in said:
            return datetime.fromisoformat(said["timestamp"]).astimezone(UTC)
    raise ValueError(f"the extender's log does not tell of job {job}")


def _await(answer: Callable[[], str], complaint: str) -> str:
    ends_s = time.monotonic() + _PATIENCE_S
    while not (found := answer()):
        if time.monotonic() > ends_s:
            raise TimeoutError(complaint)
        time.sleep(_POLL_S)
    return found


if __name__ == "__main__":
    typer.run(main)
