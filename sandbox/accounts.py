"""The user accounts Slurm sees, without touching the machine's.

Slurm looks every user up by name. nss_wrapper, a library that comes with the Slurm programs, answers from files of ours:
the machine's accounts, those of our servers and some people to submit jobs as. So it works for a uid without an account
(`docker run -u 12345`), and users need none to have jobs, shares and limits.
"""

from collections.abc import Iterable
from pathlib import Path

from sandbox import identity
from sandbox.identity import Identity

JOB_USER = Identity(name="kubernetes", uid=64100, gid=64100)
"""Whom placeholders run as unless the settings say otherwise; also the name of its account in the accounting."""
PEOPLE = (
    Identity(name="alice", uid=64101, gid=64101),
    Identity(name="bob", uid=64102, gid=64102),
)
_LIBRARY = "libnss_wrapper.so"


def environment(folder: Path, libraries: Path | None) -> dict[str, str]:
    """Write the account files to `folder`; what a Slurm program needs in its environment to see them.

    Empty without the library (a Slurm from the machine's own packages): then the machine's accounts are all there are.
    """
    if libraries is None or not available(libraries):
        return {}
    known = (
        identity.ROOT,
        identity.caller(),
        identity.servers(),
        identity.slurmrestd(),
        JOB_USER,
        *PEOPLE,
    )
    passwd = [f"{who.name}:x:{who.uid}:{who.gid}::/:/bin/sh" for who in known]
    group = [f"{who.name}:x:{who.gid}:" for who in known]
    return {
        "LD_PRELOAD": str(libraries / _LIBRARY),
        "NSS_WRAPPER_PASSWD": str(_write(folder / "passwd", Path("/etc/passwd"), passwd)),
        "NSS_WRAPPER_GROUP": str(_write(folder / "group", Path("/etc/group"), group)),
    }


def available(libraries: Path | None) -> bool:
    """Whether users beyond the machine's exist."""
    return libraries is not None and (libraries / _LIBRARY).exists()


def _write(path: Path, machine: Path, ours: Iterable[str]) -> Path:
    """The machine's entries, and ours where the machine has none of that name."""
    lines = machine.read_text().splitlines() if machine.exists() else []
    taken = {line.split(":")[0] for line in lines}
    for line in ours:
        if line.split(":")[0] not in taken:
            lines.append(line)
            taken.add(line.split(":")[0])
    path.write_text("".join(f"{line}\n" for line in lines))
    path.chmod(0o644)
    return path
