"""The accounts and hosts that Slurm sees, independent of the machine's.

Slurm looks up users by name and binds to its host name's address. nss_wrapper, a library that comes
with the Slurm programs, answers from our files: the machine's accounts, our servers' accounts and
some users to submit jobs as; and a host name for the loopback address. So Slurm works for a uid
without an account (`docker run -u 12345`) and without a network, is not reachable from outside, and
users need no account on the machine for jobs and limits.
"""

import socket
from collections.abc import Iterable
from pathlib import Path

from sandbox import identity
from sandbox.identity import Identity

JOB_USER = Identity(name="kubernetes", uid=64100, gid=64100)
"""The account placeholders run as unless the settings name another; also its account name in the
accounting.
"""
PEOPLE = (
    Identity(name="alice", uid=64101, gid=64101),
    Identity(name="bob", uid=64102, gid=64102),
)
_LIBRARY = "libnss_wrapper.so"


def available(libraries: Path | None) -> bool:
    """Check whether the library exists; it does not with a Slurm from the machine's own packages."""
    return libraries is not None and (libraries / _LIBRARY).exists()


def prepare(folder: Path, hosts: Iterable[str] = ()) -> None:
    """Write the files into `folder`, with further lines of hosts."""
    known = (
        identity.ROOT,
        identity.caller(),
        identity.servers(),
        identity.slurmrestd(),
        JOB_USER,
        *PEOPLE,
    )
    passwd = (f"{who.name}:x:{who.uid}:{who.gid}::/:/bin/sh" for who in known)
    group = (f"{who.name}:x:{who.gid}:" for who in known)
    _write(folder / "passwd", _merged(Path("/etc/passwd"), passwd))
    _write(folder / "group", _merged(Path("/etc/group"), group))
    _write(folder / "hosts", (f"127.0.0.1 {socket.gethostname()} localhost", *hosts))


def environment(folder: Path, libraries: Path | None) -> dict[str, str]:
    """Return the environment in which a Slurm program sees the files; empty without the library."""
    if libraries is None or not available(libraries):
        return {}
    return {
        "LD_PRELOAD": str(libraries / _LIBRARY),
        "NSS_WRAPPER_PASSWD": str(folder / "passwd"),
        "NSS_WRAPPER_GROUP": str(folder / "group"),
        "NSS_WRAPPER_HOSTS": str(folder / "hosts"),
    }


def _merged(machine: Path, ours: Iterable[str]) -> list[str]:
    """Merge the machine's entries with ours whose names the machine does not have."""
    lines = machine.read_text().splitlines() if machine.exists() else []
    taken = {line.split(":")[0] for line in lines}
    for line in ours:
        if line.split(":")[0] not in taken:
            lines.append(line)
            taken.add(line.split(":")[0])
    return lines


def _write(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines))
