"""Free loopback ports.

Chosen below the range of outgoing connections, so that a part finds its port still free after being
down for a while.
"""

import random
import socket
from collections.abc import Iterable
from pathlib import Path

LOWEST = 10_000
_EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def choose(names: Iterable[str], *, dice: random.Random) -> dict[str, int]:
    """Return a free port for each name."""
    highest = max(int(_EPHEMERAL_RANGE.read_text().split()[0]), LOWEST + 10_000)
    chosen: dict[str, int] = {}
    for name in names:
        port = dice.randrange(LOWEST, highest)
        while port in chosen.values() or not is_free(port):
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
