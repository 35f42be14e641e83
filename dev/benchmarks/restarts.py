"""What running pods notice of restarts: `python -m benchmarks.restarts --pods 500`.

Restarts slurmctld, then the same without its state while other jobs wait for the pods' nodes, then
all our services. After each: how many pods were evicted, how many have a running placeholder on
their own node, and how long it took until all had one and the services were ready.
"""

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names

_NAMESPACE = "restarts"
_CREATORS = 4
_GIVEN_UP_AFTER_S = 600.0
_POLL_S = 0.2
_SERVICES = ("webhook", "extender", "controllers")
_PATH = f"/api/v1/namespaces/{_NAMESPACE}/pods"


@dataclass(frozen=True, slots=True)
class Step:
    """The state of pods and placeholders."""

    pods: int
    evicted: int
    """Deleted, or being deleted."""
    held: int
    """Running, with a running placeholder on their own node whose id they carry."""
    ready: bool
    """True if all services report ready."""


def main() -> None:
    """Measure, and print one line of JSON for each restart."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=500)
    parser.add_argument("--nodes", type=int, default=64)
    arguments = parser.parse_args()
    options = Options(
        accounting=True,
        nodes=arguments.nodes,
        node_cpus=-(-arguments.pods // arguments.nodes) + 1,
        hurried=False,
    )
    root = Path(tempfile.mkdtemp(prefix="slurm-bridge-restarts-"))
    root.chmod(0o755)
    try:
        with Sandbox.up(root, options) as sandbox:
            measure(sandbox, arguments.pods)
    finally:
        shutil.rmtree(root, ignore_errors=True)


def measure(sandbox: Sandbox, pods: int) -> None:
    """Fill the cluster, then restart one thing after another."""
    labels = {names.ENABLED_LABEL: "true"}
    sandbox.admin.create(
        "/api/v1/namespaces",
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": _NAMESPACE, "labels": labels},
        },
    )
    time.sleep(2)  # for its service account
    with ThreadPoolExecutor(_CREATORS) as creators:
        list(creators.map(lambda number: _create(sandbox, number), range(pods)))
    _report("all run", sandbox, pods, lambda: None)
    _report("slurmctld restarted", sandbox, pods, lambda: sandbox.restart("slurmctld"))
    _report("slurmctld killed", sandbox, pods, lambda: sandbox.restart("slurmctld", signal="KILL"))
    _report("slurmctld without its state, strangers waiting", sandbox, pods, lambda: _wipe(sandbox))
    _report("every service of ours", sandbox, pods, lambda: _restart_services(sandbox))


def _create(sandbox: Sandbox, number: int) -> None:
    requests = {"cpu": "1", "memory": "64Mi"}
    container = {"name": "main", "image": "example.test/image", "resources": {"requests": requests}}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"pod-{number}"},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }
    with Api(sandbox.kubeconfig) as api:
        api.create(_PATH, body)


def _wipe(sandbox: Sandbox) -> None:
    """Wipe slurmctld while other jobs want every node, queued before the nodes exist."""
    sandbox.stop("controllers")
    sandbox.restart("slurmctld", signal="KILL", wipe=True)
    shape = ("State=External", "NodeAddr=127.0.0.1", "CPUs=64", "RealMemory=1000")
    sandbox.run("scontrol", "create", "NodeName=spare", *shape, f"Feature={names.BRIDGED_FEATURE}")
    sandbox.run("scontrol", "update", "NodeName=spare", "State=DRAIN", "Reason=benchmark")
    for _ in range(sandbox.instance.options.nodes):
        whole = ("--exclusive", "--mem=100", "-t", "60", "-p", "slurm-bridge", "-J", "stranger")
        sandbox.run("sbatch", "--external", *whole)
    sandbox.start("controllers", wait=False)


def _restart_services(sandbox: Sandbox) -> None:
    for service in _SERVICES:
        sandbox.restart(service, wait=False)


def _report(what: str, sandbox: Sandbox, pods: int, happen: Callable[[], None]) -> None:
    began_s = time.monotonic()
    happen()
    done_s = time.monotonic()
    while (step := _step(sandbox)) != Step(pods, 0, pods, ready=True):
        if time.monotonic() - done_s > _GIVEN_UP_AFTER_S:
            break
        time.sleep(_POLL_S)
    facts = {
        "pods": step.pods,
        "evicted": pods - step.pods + step.evicted,
        "held": step.held,
        "ready": step.ready,
        "restart_s": round(done_s - began_s, 1),
        "then_in_step_s": round(time.monotonic() - done_s, 1),
    }
    print(json.dumps({"what": what, **facts}), flush=True)


def _step(sandbox: Sandbox) -> Step:
    pods = sandbox.admin.get(_PATH)["items"]
    lines = sandbox.run("squeue", "-h", "-t", "RUNNING", "-o", "%i %N").split("\n")
    jobs = dict(line.split(" ", 1) for line in lines if line)
    return Step(
        pods=len(pods),
        evicted=sum("deletionTimestamp" in pod["metadata"] for pod in pods),
        held=sum(_is_held(pod, jobs) for pod in pods),
        ready=all(map(_is_ready, (sandbox,) * len(_SERVICES), _SERVICES)),
    )


def _is_held(pod: Mapping[str, Any], jobs: Mapping[str, str]) -> bool:
    job = pod["metadata"].get("labels", {}).get(names.JOB_ID_LABEL, "")
    is_running = pod["status"]["phase"] == "Running"
    return bool(is_running and jobs.get(job) == pod["spec"].get("nodeName"))


def _is_ready(sandbox: Sandbox, service: str) -> bool:
    try:
        url = f"{sandbox.instance.url(f'{service}-health')}/readyz"
        return httpx.get(url, trust_env=False).is_success
    except httpx.TransportError:
        return False


if __name__ == "__main__":
    main()
