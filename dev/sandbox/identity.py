"""The accounts the programs run as.

If root starts a sandbox, programs that are not ours run as unprivileged accounts, because
slurmrestd refuses to be root or SlurmUser and mariadb refuses root. Otherwise everything runs as
the caller. Our Python services always run as the caller: the interpreter may be in a home folder
that no other user may enter.
"""

import os
import pwd
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxError


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A uid and gid, with the name Slurm's configuration uses for the uid."""

    name: str
    uid: int
    gid: int


ROOT = Identity(name="root", uid=0, gid=0)
# The standard numbers of Debian and its derivatives; elsewhere our own passwd file has the names
# (`sandbox.nss`).
SERVERS = Identity(name="daemon", uid=1, gid=1)
SLURMRESTD = Identity(name="games", uid=5, gid=60)


def caller() -> Identity:
    """Return the calling account. A uid without an account (a container's) is called `caller`."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = "caller"
    return Identity(name=name, uid=uid, gid=os.getgid())


def servers() -> Identity:
    """Return the account of etcd, Kubernetes, KWOK, slurmctld, slurmdbd and mariadb."""
    return SERVERS if os.getuid() == 0 else caller()


def slurmrestd() -> Identity:
    """Return slurmrestd's account; it must not be SlurmUser, as far as we have a choice."""
    return SLURMRESTD if os.getuid() == 0 else caller()


def check_reachable(folder: Path) -> None:
    """Check that the accounts of root's children can reach `folder`.

    Raises:
        SandboxError: names the first closed folder on the way.
    """
    if os.getuid() != 0:
        return
    for parent in reversed((folder, *folder.parents)):
        if parent.exists() and not parent.stat().st_mode & 0o001:
            raise SandboxError(
                f"{folder}: started by root, the sandbox runs its servers as user {SERVERS.name}, which may not enter {parent}; "
                "choose another folder with --state, such as /var/lib/slurm-bridge/sandbox"
            )
