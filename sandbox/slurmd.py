"""One machine that both systems use.

A real slurmd beside KWOK's kubelet, for `sandbox up --hybrid`.

It needs root: slurmd wants a private /run, and starts jobs as other users. It reports as many CPUs
as the other nodes, whatever this machine has (`config_overrides`), and leaves cgroups alone.
"""

import os
import signal
from functools import partial
from pathlib import Path

from sandbox import identity, probes, slurm, slurm_conf
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.instance import Instance, make_folder
from sandbox.part import Part

_UNSHARE = Path("/usr/bin/unshare")


def check(asset: Asset) -> None:
    """Check in advance for what is missing.

    Raises:
        SandboxError: slurmd cannot run here.
    """
    if os.getuid() != 0:
        raise SandboxError(
            "--hybrid runs a real slurmd, which needs root: start the sandbox as root, or leave it out"
        )
    if not _UNSHARE.exists():
        raise SandboxError(f"--hybrid needs {_UNSHARE} (package util-linux)")
    for program in ("slurmd", "slurmstepd"):
        if not (asset.bin / program).exists():
            raise SandboxError(f"--hybrid needs {program}, which is not in {asset.bin}")


def prepare(instance: Instance) -> None:
    """Create slurmd's folders and its own configuration, with what slurmctld's must not have."""
    make_folder(instance.slurm / "spool", identity.ROOT)
    text = instance.slurm_conf.read_text()
    # slurmstepd reports through slurmd's socket, so it must stay enabled here, unlike in
    # slurmctld's file.
    text = text.replace("AuthInfo=disable_sack\n", "")
    _conf(instance).write_text(f"{text}DebugFlags=NO_CONF_HASH\n")
    (_conf(instance).parent / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    (_conf(instance).parent / "gres.conf").write_text(slurm_conf.gres_conf(instance))
    for index in range(instance.options.hybrid_gpus):
        Path(f"{slurm_conf.device(instance)}{index}").touch()


def part(instance: Instance, asset: Asset) -> Part:
    """Return the slurmd."""
    # Passed as arguments: the library to be preloaded fits slurmd, not the programs that start it.
    environment = {
        **slurm.daemon_environment(instance, asset),
        "SLURM_CONF": str(_conf(instance)),
    }
    settings = (f"{name}={value}" for name, value in environment.items())
    slurmd = (
        str(asset.bin / "slurmd"),
        "-D",
        *("-N", instance.options.hybrid_name),
        *("-f", str(_conf(instance))),
        *("-d", str(asset.bin / "slurmstepd")),
    )
    own_run = 'mount -t tmpfs none /run && mkdir /run/slurm && exec "$@"'
    return Part(
        name="slurmd",
        argv=(
            *(str(_UNSHARE), "--mount", "/bin/sh", "-c", own_run, "slurmd"),
            *("/usr/bin/env", *settings, *slurmd),
        ),
        identity=identity.ROOT,
        folder=instance.slurm / "spool",
        port=instance.ports["slurmd"],
        answers=partial(probes.listens, instance.ports["slurmd"]),
        needs=("slurmctld",),
        leaves_by=signal.SIGTERM,  # it has processes of its own to look after
    )


def _conf(instance: Instance) -> Path:
    return make_folder(instance.slurm / "slurmd", identity.ROOT) / "slurm.conf"
