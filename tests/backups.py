"""Either side's state as a backup keeps it, and put back while the other side has gone on."""

import shutil
import subprocess
from pathlib import Path

from sandbox.client import Sandbox

_COPY = ("/bin/cp", "-a")
"""With owners: the servers run as somebody else."""
_STARTED_ANEW = ("controller-manager", "scheduler", "kwok", "bridge-scheduler")
"""What an administrator starts anew with the API server after a restore, as Kubernetes has no other way for its own parts.

Source: <https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/#restoring-an-etcd-cluster>.
"""


def keep_slurm(sandbox: Sandbox, copy: Path) -> None:
    """Copy slurmctld's state as it is now."""
    _keep(sandbox, "slurmctld", _slurm(sandbox), copy)


def put_back_slurm(sandbox: Sandbox, copy: Path) -> None:
    """Have slurmctld come back from that copy."""
    sandbox.stop("slurmctld", signal="KILL")
    _put_back(_slurm(sandbox), copy)
    sandbox.start("slurmctld")


def keep_kubernetes(sandbox: Sandbox, copy: Path) -> None:
    """Copy etcd's data as they are now."""
    _keep(sandbox, "etcd", _etcd(sandbox), copy)


def put_back_kubernetes(sandbox: Sandbox, copy: Path) -> None:
    """Have Kubernetes come back from that copy; our services are left alone."""
    sandbox.stop("apiserver", signal="KILL")
    sandbox.stop("etcd", signal="KILL")
    _put_back(_etcd(sandbox), copy)
    sandbox.start("etcd")
    sandbox.start("apiserver")
    for part in sandbox.status().keys() & _STARTED_ANEW:
        sandbox.restart(part)


def _slurm(sandbox: Sandbox) -> Path:
    return sandbox.instance.slurm / "state"


def _etcd(sandbox: Sandbox) -> Path:
    return sandbox.instance.kube / "etcd"


def _keep(sandbox: Sandbox, part: str, data: Path, copy: Path) -> None:
    sandbox.stop(part)
    subprocess.run((*_COPY, data, copy), check=True)
    sandbox.start(part)


def _put_back(data: Path, copy: Path) -> None:
    shutil.rmtree(data)
    subprocess.run((*_COPY, copy, data), check=True)
