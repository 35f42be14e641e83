"""What a cluster has beside us and this one lacks: the way to Slurm, kube-scheduler's image."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from sandbox import assets
from sandbox.assets import AssetName
from sandbox.client import Sandbox
from sandbox.realnodes import images
from sandbox.realnodes.images import Entry, Image
from sandbox.realnodes.network import Network

ROOT = Path(__file__).parents[3]
SCHEDULER = "kube-scheduler"


@contextlib.contextmanager
def reachable(sandbox: Sandbox, *parts: str) -> Iterator[str]:
    """Let pods reach parts of the sandbox, without any those of Slurm; yield the address at which they are."""
    gateway = Network.load(sandbox.instance.root).gateway
    ports = (sandbox.instance.ports[part] for part in parts or ("slurmrestd", "slurmctld"))
    relay = (sys.executable, "-m", "sandbox.realnodes.relay", gateway)
    running = [subprocess.Popen((*relay, str(port)), cwd=ROOT) for port in ports]
    try:
        yield gateway
    finally:
        for process in running:
            process.kill()
            process.wait()


def helm() -> Path:
    """Return helm's program."""
    with assets.shown(sys.stderr) as report:
        return assets.resolve(AssetName.HELM, report=report).bin / "helm"


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
