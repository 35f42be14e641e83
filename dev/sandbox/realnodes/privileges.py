"""The effective capabilities of this process, capabilities(7)."""

import re
from pathlib import Path

NET_ADMIN, SYS_ADMIN, SYS_RESOURCE, MKNOD = 12, 21, 24, 27
NAMES = {
    NET_ADMIN: "CAP_NET_ADMIN",
    SYS_ADMIN: "CAP_SYS_ADMIN",
    SYS_RESOURCE: "CAP_SYS_RESOURCE",
    MKNOD: "CAP_MKNOD",
}


def effective() -> frozenset[int]:
    """Return the numbers of the capabilities in effect."""
    return parse(Path("/proc/self/status").read_text())


def parse(status: str) -> frozenset[int]:
    """Return the numbers in the line CapEff of `/proc/PID/status`."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    bits = int(match[1], 16) if match else 0
    return frozenset(number for number in range(bits.bit_length()) if bits >> number & 1)
