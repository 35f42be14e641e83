"""Nodes with a real slurmd, which run batch scripts.

`sandbox up --compute N` adds N nodes that only Slurm knows, compute-0, compute-1 …; `--hybrid` adds one that is a Kubernetes node,
too, with KWOK's kubelet.

They need root: slurmd needs a private /run, and starts jobs as other users. They report as many CPUs
as the other nodes, whatever this machine has (`config_overrides`), and leave cgroups alone. Scripts find
srun and Slurm's other commands on their PATH.
"""

import os
import shlex
import signal
from functools import partial
from pathlib import Path

from sandbox import identity, nss, probes, slurm, slurm_conf
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.instance import Instance, make_folder
from sandbox.part import Part

COMMANDS = (
    "sacct",
    "sattach",
    "sbatch",
    "sbcast",
    "scancel",
    "scontrol",
    "sinfo",
    "squeue",
    "srun",
)
"""Slurm's commands for scripts, as far as the asset has them."""
_UNSHARE = Path("/usr/bin/unshare")
_ON_PATH = "/usr/local/sbin"
"""The commands' folder for scripts, in slurmd's own mount namespace: the first folder of every usual PATH."""


def check(instance: Instance, asset: Asset) -> None:
    """Check that slurmd can run here.

    Raises:
        SandboxError: it cannot.
    """
    flag = "--compute" if instance.options.compute else "--hybrid"
    if os.getuid() != 0:
        raise SandboxError(
            f"{flag} runs a real slurmd, which needs root: start the sandbox as root, or omit the option."
            " Without it, no batch scripts can run: slurmctld refuses batch jobs if there is no slurmd"
        )
    if not _UNSHARE.exists():
        raise SandboxError(f"{flag} needs {_UNSHARE} (package util-linux)")
    for program in ("slurmd", "slurmstepd"):
        if not (asset.bin / program).exists():
            raise SandboxError(f"{flag} needs {program}, which is missing from {asset.bin}")


def prepare(instance: Instance, asset: Asset) -> None:
    """Create the slurmds' folders, their own configuration, the scripts' commands, and users' folders."""
    for name in instance.options.slurmd_names:
        make_folder(instance.slurm / "spool" / name, identity.ROOT)
    text = instance.slurm_conf.read_text()
    # slurmstepd and srun report through slurmd's socket, so it must stay enabled here, unlike in
    # slurmctld's file.
    text = text.replace("AuthInfo=disable_sack\n", "")
    _conf(instance).write_text(f"{text}DebugFlags=NO_CONF_HASH\n")
    (_conf(instance).parent / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
    (_conf(instance).parent / "gres.conf").write_text(slurm_conf.gres_conf(instance))
    for index in range(instance.options.hybrid_gpus):
        Path(f"{slurm_conf.device(instance)}{index}").touch()
    make_folder(_commands(instance), identity.ROOT)
    for name in COMMANDS:
        if (asset.bin / name).exists():
            slurm.write_command(
                _commands(instance) / name,
                asset,
                instance.slurm,
                {"SLURM_CONF": str(_conf(instance))},
            )
    for who in (nss.JOB_USER, *nss.PEOPLE):
        make_folder(instance.shared / who.name, who)


def parts(instance: Instance, asset: Asset) -> tuple[Part, ...]:
    """Return the slurmds; a node's part has the node's name, but the hybrid one's is called slurmd."""
    options = instance.options
    hybrid = (_part(instance, asset, "slurmd", options.hybrid_name),) if options.hybrid_name else ()
    return (*hybrid, *(_part(instance, asset, name, name) for name in options.compute_names))


def _part(instance: Instance, asset: Asset, name: str, node: str) -> Part:
    # Passed as arguments: the library to preload fits slurmd, not the programs that start it.
    environment = {
        **slurm.daemon_environment(instance, asset),
        "SLURM_CONF": str(_conf(instance)),
    }
    settings = (f"{variable}={value}" for variable, value in environment.items())
    slurmd = (
        str(asset.bin / "slurmd"),
        "-D",
        *("-N", node),
        *("-f", str(_conf(instance))),
        *("-d", str(asset.bin / "slurmstepd")),
    )
    own_folders = (
        "mount -t tmpfs none /run && mkdir /run/slurm &&"
        f" mount --bind {shlex.quote(str(_commands(instance)))} {_ON_PATH}"
        ' && exec "$@"'
    )
    return Part(
        name=name,
        argv=(
            *(str(_UNSHARE), "--mount", "/bin/sh", "-c", own_folders, "slurmd"),
            *("/usr/bin/env", *settings, *slurmd),
        ),
        identity=identity.ROOT,
        folder=instance.slurm / "spool" / node,
        port=instance.ports[name],
        answers=partial(probes.listens, instance.ports[name]),
        needs=("slurmctld",),
        leaves_by=signal.SIGTERM,  # it has to end its own processes
    )


def _conf(instance: Instance) -> Path:
    return make_folder(instance.slurm / "slurmd", identity.ROOT) / "slurm.conf"


def _commands(instance: Instance) -> Path:
    return instance.slurm / "slurmd" / "bin"
