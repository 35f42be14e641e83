"""A slurmd in the same box as a kubelet: one machine that both systems really use.

It reaches slurmctld through the relay at the bridge's address, and slurmctld reaches it at the
node's own. It leaves cgroups alone.
"""

import re
import shlex
import socket
from pathlib import Path

from sandbox import identity, nss, slurm_conf
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.instance import Instance, write_private
from sandbox.realnodes.network import Network

ETC = Path("/etc/slurm")
_DEVICE = "/dev/gpu"
"""The path of a node's devices, without their index."""
_FOLDERS = re.compile(r"^Slurmd(SpoolDir|PidFile)=.*\n", re.MULTILINE)
"""Those on the host."""
_PLAIN_FILES = ("passwd", "group")


def hosts(instance: Instance, network: Network | None) -> tuple[str, ...]:
    """Return the nodes' lines for /etc/hosts: slurmctld looks up their addresses when a job starts."""
    if network is None:
        return ()
    named = enumerate(instance.options.hybrid_real_names)
    return tuple(f"{network.address(index)} {name}" for index, name in named)


def prepare(instance: Instance, asset: Asset, network: Network) -> None:
    """Write the files of each node's slurmd below the node's /etc.

    Raises:
        SandboxError: Slurm was installed, not unpacked: a box sees only its own tree and mounts.
    """
    library = next((asset.root or Path()).glob("usr/lib/*/slurm-wlm"), None)
    if asset.root is None or library is None or not (asset.bin / "slurmd").exists():
        raise SandboxError(
            f"--hybrid with --real-nodes needs Slurm in a folder of its own, not {asset.bin}:"
            " unset SANDBOX_SLURM and SANDBOX_USE_PATH"
        )
    gres = slurm_conf.real_gres(instance.options)
    for index, name in enumerate(instance.options.hybrid_real_names):
        etc = instance.root / "nodes" / name / "etc" / "slurm"
        etc.mkdir(parents=True, exist_ok=True)
        (etc / "slurm.conf").write_text(configuration(instance.slurm_conf.read_text(), network))
        (etc / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        (etc / "gres.conf").write_text(gres_conf(gres))
        (etc / "slurmd.sh").write_text(_devices(gres) + _command(asset, library.parent, name))
        (etc / "hosts").write_text(f"{network.address(index)} {name} localhost\n")
        for file in _PLAIN_FILES:
            (etc / file).write_bytes((instance.slurm / file).read_bytes())
        write_private(etc / "slurm.key", (instance.slurm / "slurm.key").read_bytes(), identity.ROOT)


def configuration(text: str, network: Network) -> str:
    """Return a node's slurm.conf, derived from slurmctld's."""
    host = socket.gethostname()
    # slurmstepd reports through slurmd's socket, so it must stay enabled here.
    text = text.replace("AuthInfo=disable_sack\n", "")
    text = text.replace(
        f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldHost={host}({network.gateway})"
    )
    text = _FOLDERS.sub("", text)
    folders = "SlurmdSpoolDir=/var/spool/slurmd\nSlurmdPidFile=/run/slurmd.pid\n"
    return f"{text}{folders}DebugFlags=NO_CONF_HASH\n"


def gres_conf(gres: str) -> str:
    """Return a node's gres.conf.

    Args:
        gres: `gpu:example:4`; "" for none.
    """
    if not gres:
        return ""
    kind, count = gres.rsplit(":", 1)
    name, _, gres_type = kind.partition(":")
    typed = f" Type={gres_type}" if gres_type else ""
    return f"Name={name}{typed} File={_DEVICE}[0-{int(count) - 1}]\n"


def _devices(gres: str) -> str:
    """Return shell commands that create the devices in gres.conf: slurmd gives its jobs no indexes of plain files."""
    count = int(gres.rsplit(":", 1)[-1]) if gres else 0
    named = " ".join(f"{_DEVICE}{index}" for index in range(count))
    return f"for device in {named}; do [ -e $device ] || mknod $device c 1 3; done\n"


def _command(asset: Asset, libraries: Path, name: str) -> str:
    environment = {
        "SLURM_CONF": str(ETC / "slurm.conf"),
        "SLURM_SACK_KEY": str(ETC / "slurm.key"),
        **nss.environment(ETC, libraries),
    }
    settings = (f"{key}={value}" for key, value in environment.items())
    slurmd = (
        str(asset.bin / "slurmd"),
        *("-D", "-N", name),
        *("-f", str(ETC / "slurm.conf")),
        *("-d", str(asset.bin / "slurmstepd")),
    )
    # Passed to env: the library to preload fits slurmd, not the shell.
    return f"mkdir -p /run/slurm\nexec {shlex.join(('env', *settings, *slurmd))}\n"
