"""`python -m benchmarks.endings`.

How soon an end on one side takes effect on the other, with many pods running.

Both are measured from outside, one sample after another: from a pod's terminal status to its job's
end, and from a job's cancel to its pod's deletion. Slurm is queried often meanwhile, so slurmctld's
CPU time is taken in between, when only our services query it.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import httpx
import typer
from rich.console import Console

from benchmarks import many_ended
from benchmarks.meter import cpu_s
from sandbox.api import Api
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.process.clock import SystemClock
from slurmruntime.values import names

_NAMESPACE = "endings"
_PODS = f"/api/v1/namespaces/{_NAMESPACE}/pods"
_LOOK_EVERY_S = 0.02
_PATIENCE_S = 900.0


@dataclass(frozen=True, slots=True)
class _World:
    """One sandbox with running pods."""

    sandbox: Sandbox
    slurm: httpx.Client

    def pod(self, name: str) -> dict[str, Any]:
        return self.sandbox.admin.get(f"{_PODS}/{name}")

    def job_states(self, job_id: str) -> list[str]:
        answer = self.slurm.get(f"/slurm/v0.0.44/job/{job_id}", params={"flags": "ALL"})
        states: list[str] = answer.json()["jobs"][0]["job_state"]
        return states


def main(
    *,
    pods: Annotated[int, typer.Option(help="Pods running meanwhile.", min=1)] = 1000,
    samples: Annotated[int, typer.Option(help="Ends of each kind.", min=2)] = 20,
    idle_s: Annotated[float, typer.Option(help="How long to watch slurmctld.", min=1)] = 30,
    simulated: Annotated[
        int, typer.Option(help="Pods known only by their placeholders in Slurm; 0: none.")
    ] = 10_000,
) -> None:
    """Measure endings on sandboxes of its own."""
    console = Console()
    nodes = -(-(pods + 2 * samples) // 8)
    with (
        _folder() as folder,
        Sandbox.up(folder, Options(nodes=nodes)) as sandbox,
        httpx.Client(
            base_url=sandbox.slurmrestd_url,
            headers={"X-SLURM-USER-TOKEN": sandbox.token()},
            trust_env=False,
        ) as slurm,
    ):
        world = _World(sandbox, slurm)
        _fill(world, pods + 2 * samples)
        share = _share(sandbox, idle_s)
        told = [_pod_end(world, f"p{number}") for number in range(samples)]
        evicted = [_job_end(world, f"p{number}") for number in range(samples, 2 * samples)]
        share_without = _share_without_us(sandbox, idle_s)
    console.print(f"{pods} pods running")
    console.print(f"pod end to job ended: {_spread(told)}")
    console.print(f"job end to eviction:  {_spread(evicted)}")
    console.print(_shares(share, share_without))
    if simulated:
        found = many_ended.measure(simulated, samples, idle_s)
        console.print(f"{simulated} placeholders in Slurm, their pods simulated")
        console.print(f"job end to the decision to evict: {_spread(found.delays_s)}")
        console.print(_shares(found.share_with, found.share_without))


@contextmanager
def _folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-bench-"))
    folder.chmod(0o755)  # the servers' accounts must be able to enter
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _share(sandbox: Sandbox, idle_s: float) -> float:
    """Return slurmctld's share of one core while nothing happens."""
    pid = sandbox.status()["slurmctld"].pid or 0
    before = cpu_s(pid)
    time.sleep(idle_s)
    return (cpu_s(pid) - before) / idle_s


def _share_without_us(sandbox: Sandbox, idle_s: float) -> float:
    """Return the same while none of our services queries it."""
    for service in ("extender", "controllers"):
        sandbox.stop(service)
    return _share(sandbox, idle_s)


def _shares(with_us: float, without: float) -> str:
    return (
        f"slurmctld: {with_us:.2%} of one core; {without:.2%} while nobody reads it;"
        f" our readings: {with_us - without:.2%}"
    )


def _fill(world: _World, count: int) -> None:
    """Start this many pods, and wait until they run."""
    admin = world.sandbox.admin
    admin.create(
        "/api/v1/namespaces",
        {"metadata": {"name": _NAMESPACE, "labels": {names.ENABLED_LABEL: "true"}}},
    )
    account = f"/api/v1/namespaces/{_NAMESPACE}/serviceaccounts"
    _await(lambda: admin.get(account)["items"])

    def create(number: int) -> None:
        requests = {"cpu": "1", "memory": "64Mi"}
        container = {"name": "main", "image": "x", "resources": {"requests": requests}}
        spec = {"restartPolicy": "Never", "containers": [container]}
        with Api(world.sandbox.kubeconfig) as api:
            api.create(_PODS, {"metadata": {"name": f"p{number}"}, "spec": spec})

    with ThreadPoolExecutor(4) as creators:
        list(creators.map(create, range(count)))
    running = {"fieldSelector": "status.phase=Running"}
    _await(lambda: len(admin.get(_PODS, **running)["items"]) == count)
    time.sleep(2 * 5)  # until the last one knows its allocation


def _pod_end(world: _World, name: str) -> float:
    """Return the time from a pod's terminal status to the end of its job."""
    pod = world.pod(name)
    job_id = pod["metadata"]["labels"][names.JOB_ID_LABEL]
    (status,) = pod["status"]["containerStatuses"]
    times = {"startedAt": status["state"]["running"]["startedAt"], "finishedAt": _stamp()}
    over = {"terminated": {**times, "exitCode": 0, "reason": "Completed"}}
    ended = {"phase": "Succeeded", "containerStatuses": [{**status, "state": over}]}
    world.sandbox.admin.request(
        "PATCH",
        f"{_PODS}/{name}/status",
        {"status": ended},
        content_type="application/strategic-merge-patch+json",
    )
    return _await(lambda: "COMPLETED" in world.job_states(job_id))


def _job_end(world: _World, name: str) -> float:
    """Return the time from a job's cancel to the deletion of its pod."""
    job_id = world.pod(name)["metadata"]["labels"][names.JOB_ID_LABEL]
    world.slurm.delete(f"/slurm/v0.0.44/job/{job_id}")
    return _await(lambda: "deletionTimestamp" in world.pod(name)["metadata"])


def _stamp() -> str:
    return f"{SystemClock().now():%Y-%m-%dT%H:%M:%SZ}"


def _await(condition: Callable[[], object]) -> float:
    began = time.perf_counter()
    while not condition():
        if time.perf_counter() - began > _PATIENCE_S:
            raise TimeoutError(f"it did not happen within {_PATIENCE_S:g} s")
        time.sleep(_LOOK_EVERY_S)
    return time.perf_counter() - began


def _spread(seconds: Sequence[float]) -> str:
    return f"median {statistics.median(seconds):.2f} s, worst {max(seconds):.2f} s"


if __name__ == "__main__":
    typer.run(main)
