"""Free loopback ports.

Chosen below the range of outgoing connections, so that a part's port stays free while it is down.
Sandboxes that start at the same time choose different ones, although nothing listens on them yet.
"""

import fcntl
import os
import random
import re
import socket
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from slurmruntime.process.clock import SystemClock

LOWEST = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_CHOSEN = re.compile(r"(\d{1,5}) (\d{1,12})")
"""A line of the list of chosen ports: port, and Unix time in seconds."""
_STARTS_WITHIN_S = 300.0
"""After this long, a chosen port is in use, or never will be."""


def choose(names: Iterable[str], *, dice: random.Random) -> dict[str, int]:
    """Return a free port for each name, different from those that this user's other sandboxes have just chosen."""
    path = Path(tempfile.gettempdir(), f"slurm-bridge-ports-{os.getuid()}")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        now = SystemClock().now().timestamp()
        # A process killed while writing may have left half a line, which does not match.
        lines = filter(None, map(_CHOSEN.fullmatch, file.read().splitlines()))
        listed = {int(line[1]): int(line[2]) for line in lines}
        recent = {port: at for port, at in listed.items() if abs(now - at) < _STARTS_WITHIN_S}
        chosen = _choose(names, recent, dice)
        recent |= dict.fromkeys(chosen.values(), int(now))
        file.seek(0)
        file.truncate()
        file.writelines(f"{port} {at}\n" for port, at in recent.items())
    return chosen


def _choose(names: Iterable[str], taken: Collection[int], dice: random.Random) -> dict[str, int]:
    highest = max(int(_EPHEMERAL_RANGE.read_text().split()[0]), LOWEST + 10_000)
    chosen: dict[str, int] = {}
    for name in names:
        port = dice.randrange(LOWEST, highest)
        while port in chosen.values() or port in taken or not is_free(port):
            port = dice.randrange(LOWEST, highest)
        chosen[name] = port
    return chosen


def is_free(port: int) -> bool:
    """Check that nothing listens there on any address."""
    with socket.socket() as sock:
        try:
            sock.bind(("", port))
        except OSError:
            return False
        return True
