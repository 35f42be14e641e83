"""What a cluster has beside us and this one lacks: names, the way to Slurm, kube-scheduler's image."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sandbox import assets
from sandbox.assets import AssetName
from sandbox.client import Sandbox
from sandbox.realnodes import configuration, images
from sandbox.realnodes.images import Entry, Image
from sandbox.realnodes.network import Network
from tests.realnodes.installed import name_server

ROOT = Path(__file__).parents[3]
SCHEDULER = "kube-scheduler"


@contextlib.contextmanager
def reachable(sandbox: Sandbox) -> Iterator[str]:
    """Let pods resolve Services and reach Slurm; yield the address at which Slurm is."""
    gateway = Network.load(sandbox.instance.root).gateway
    _name_service(sandbox, gateway)
    commands = [
        ("tests.realnodes.installed.name_server", gateway, str(sandbox.instance.kubeconfig)),
        *(
            ("sandbox.realnodes.relay", gateway, str(sandbox.instance.ports[part]))
            for part in ("slurmrestd", "slurmctld")
        ),
    ]
    running = [subprocess.Popen((sys.executable, "-m", *command), cwd=ROOT) for command in commands]
    try:
        yield gateway
    finally:
        for process in running:
            process.kill()
            process.wait()


def _name_service(sandbox: Sandbox, gateway: str) -> None:
    port = {"name": "dns", "port": name_server.PORT, "protocol": "UDP"}
    sandbox.admin.create(
        "/api/v1/namespaces/kube-system/services",
        {
            "metadata": {"name": "kube-dns"},
            "spec": {"clusterIP": configuration.CLUSTER_DNS, "ports": [port]},
        },
    )
    sandbox.admin.create(
        "/apis/discovery.k8s.io/v1/namespaces/kube-system/endpointslices",
        {
            "metadata": {"name": "kube-dns", "labels": {"kubernetes.io/service-name": "kube-dns"}},
            "addressType": "IPv4",
            "ports": [port],
            "endpoints": [{"addresses": [gateway], "conditions": {"ready": True}}],
        },
    )


def load_scheduler(sandbox: Sandbox, folder: Path) -> None:
    """Give the nodes an image of the cluster's own kube-scheduler, under its own version."""
    with assets.shown(sys.stderr) as report:
        kube = assets.resolve(AssetName.KUBE, report=report)
    entries = [
        *(Entry(path=name, is_folder=True) for name in ("usr", "usr/local", "usr/local/bin")),
        Entry(path=f"usr/local/bin/{SCHEDULER}", data=(kube.bin / SCHEDULER).read_bytes()),
    ]
    image = Image(name=images.full_name(f"{SCHEDULER}:v{kube.version}"))
    archive = folder / f"{SCHEDULER}.tar"
    images.archive(archive, image, images.layer_of(entries))
    sandbox.load_image(archive)
