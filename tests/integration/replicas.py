"""More processes of our services than the sandbox has, straight to both worlds."""

import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import yaml

from sandbox import chart, services
from sandbox.client import Sandbox

_ROOT = Path(__file__).parents[2]


@contextmanager
def second_replica(
    sandbox: Sandbox, service: str, folder: Path, *, like: str = ""
) -> Iterator[str]:
    """Another process of a service; the address of its health.

    like: the sandbox's part with its settings, if that has another name.
    """
    ports = [_free_port(), _free_port()]
    config = yaml.safe_load(
        (sandbox.instance.bridge / (like or service) / "config.yaml").read_text()
    )
    config["kubernetes"]["kubeconfig"] = str(chart.credentials(sandbox.instance, service))
    config["slurm"]["url"] = sandbox.slurmrestd_url
    config["slurm"]["controller_port"] = sandbox.slurmctld_port
    config["health"]["listen"] = f"127.0.0.1:{ports[0]}"
    config["server"] = {**config["server"], "listen": f"127.0.0.1:{ports[1]}"}
    path = folder / f"second-{service}.yaml"
    path.write_text(yaml.safe_dump(config))
    with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen(
            (
                *services.command(sandbox.instance.options, service),
                "--config",
                str(path),
                *chart.arguments(service),
            ),
            cwd=_ROOT,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        try:
            yield f"http://127.0.0.1:{ports[0]}"
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def _free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


def is_ready(health: str) -> bool:
    """Whether it could take a lease at once."""
    try:
        return httpx.get(f"{health}/readyz", trust_env=False).is_success
    except httpx.TransportError:
        return False


def leads(health: str) -> bool:
    """Whether it leads under any lease."""
    return bool(leases(health))


def leases(health: str) -> set[str]:
    """The leases under which it leads."""
    try:
        metrics = httpx.get(f"{health}/metrics", trust_env=False).text
    except httpx.TransportError:
        return set()
    lines = [line for line in metrics.splitlines() if line.startswith("slurm_bridge_leader{")]
    return {line.split('"')[1] for line in lines if float(line.split()[-1])}
