"""Free loopback ports.

Chosen below the range of outgoing connections, so that a part finds its port still free after being
down for a while. Sandboxes that start at the same time choose different ones, although nobody listens
on them yet.
"""

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

from bridge.process.clock import SystemClock

LOWEST = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


_STARTS_WITHIN_S = 300.0
"""After this long, whoever chose a port listens on it, or will not."""


def choose(names: Iterable[str], *, dice: random.Random) -> dict[str, int]:
    """Return a free port for each name, none of which this user's other sandboxes have just chosen."""
    path = Path(tempfile.gettempdir(), f"slurm-bridge-ports-{os.getuid()}")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "r+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        now = SystemClock().now().timestamp()
        lately = [line for line in file.read().splitlines() if _age_s(line, now) < _STARTS_WITHIN_S]
        chosen = _choose(names, {int(line.partition(" ")[0]) for line in lately}, dice)
        file.seek(0)
        file.truncate()
        file.writelines(f"{line}\n" for line in lately)
        file.writelines(f"{port} {now:.0f}\n" for port in chosen.values())
    return chosen


def _age_s(line: str, now: float) -> float:
    return abs(now - float(line.partition(" ")[2]))


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
