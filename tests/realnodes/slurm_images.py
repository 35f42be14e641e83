"""Images of Slurm's daemons for tests of slurm-operator: the sandbox's own Slurm, with busybox, and the operator's contract.

Arguments go to the entry point, and the user slurm has the uid 401. There are none for users yet.
"""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from sandbox.assets import Asset
from sandbox.realnodes import images
from sandbox.realnodes.images import Image

NAME = "registry.test/{daemon}:26.05"
SHELL = "docker.io/library/alpine:latest"
"""What the objects name by default for the side-cars that print logs."""
_ENTRIES = {
    "slurmctld": 'exec slurmctld -D "$@"',
    "slurmd": 'eval exec slurmd -D "$@"',
    "slurmrestd": 'exec slurmrestd "$@"',
}
_FOLDERS = ("etc/slurm", "run/slurm", "var/spool/slurmd", "tmp", "root", "proc", "sys", "dev")
_USERS = (
    "root:x:0:0:root:/root:/bin/sh\nslurm:x:401:401::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n"
)
_GROUPS = "root:x:0:\nslurm:x:401:\nnogroup:x:65534:\n"


def build(slurm: Asset, node: Asset, folder: Path) -> Iterator[Path]:
    """Make one image for each daemon, and one with a shell; yield their archives."""
    if slurm.root is None or node.root is None:
        raise ValueError("expected unpacked packages of Slurm and of a node")
    box = node.root / "usr" / "bin" / "busybox"
    listed = subprocess.run([box, "--list"], check=True, capture_output=True, text=True)
    applets = listed.stdout.split()
    layer = images.layer_of_folder(_root(slurm.root, box, applets, folder / "root"))
    for daemon in _ENTRIES:
        image = Image(name=NAME.format(daemon=daemon), entrypoint=(f"/usr/bin/{daemon}-entry",))
        images.archive(folder / f"{daemon}.tar", image, layer)
        yield folder / f"{daemon}.tar"
    shell, entries = images.busybox(box, applets)
    images.archive(folder / "shell.tar", shell.called(SHELL), entries)
    yield folder / "shell.tar"


def _root(slurm: Path, box: Path, applets: list[str], root: Path) -> Path:
    """Copy Slurm, and add what a container of it needs."""
    database = shutil.ignore_patterns("*maria*", "*mysql*")
    shutil.copytree(slurm, root, symlinks=True, ignore=database)
    # The programs of the cache look for their loader and libraries where the cache is.
    (root / slurm.parent.relative_to("/")).mkdir(parents=True)
    (root / slurm.relative_to("/")).symlink_to("/")
    bin_, sbin = root / "usr" / "bin", root / "usr" / "sbin"
    shutil.copy(box, bin_ / "busybox")
    for applet in applets:
        if not (bin_ / applet).exists():
            (bin_ / applet).symlink_to("busybox")
    for program in sbin.glob("*-wlm"):
        (sbin / program.name.removesuffix("-wlm")).symlink_to(program.name)
    for folder in _FOLDERS:
        (root / folder).mkdir(parents=True, exist_ok=True)
    (root / "etc" / "passwd").write_text(_USERS)
    (root / "etc" / "group").write_text(_GROUPS)
    for daemon, command in _ENTRIES.items():
        entry = bin_ / f"{daemon}-entry"
        entry.write_text(f"#!/bin/sh\n{command}\n")
        entry.chmod(0o755)
    return root
