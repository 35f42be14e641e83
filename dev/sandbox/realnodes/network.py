"""The network of a sandbox's real nodes: a bridge on the host, a cable to each node.

    10.N.0.1            the host's address, where the API server is relayed to
    10.N.0.11 + i       node i
    10.N.i+1.0/24       the pods of node i, routed to it

Nodes reach each other and the host, pods reach pods, the host reaches pods. There is no route beyond.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import Self

from sandbox.errors import SandboxError

CANDIDATES = tuple(IPv4Network(f"10.{second}.0.0/16") for second in range(128, 224))
MOST_NODES = 64
INTERFACES = Path("/sys/class/net")
ALIAS = "slurm-bridge sandbox "
"""The beginning of a bridge's alias; the sandbox's folder follows."""
_FILE = "network.json"
_PREFIX = "sb-"
_UP = 1
"""RTF_UP of /proc/net/route."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The addresses of one sandbox."""

    id: str
    """Represents the sandbox's folder in names on the host, which must be short."""
    range: IPv4Network

    @property
    def bridge(self) -> str:
        """The bridge's name."""
        return bridge_of(self.id)

    @property
    def gateway(self) -> str:
        """The host's address on the bridge."""
        return str(self.range[1])

    def cable(self, index: int) -> str:
        """Return the host's end of a node's cable."""
        return f"sb{self.id}-{index}"

    def address(self, index: int) -> str:
        """Return a node's address."""
        return str(self.range[11 + index])

    def pods_of(self, index: int) -> IPv4Network:
        """Return the range of a node's pods."""
        return IPv4Network((int(self.range[0]) + (index + 1) * 256, 24))

    @classmethod
    def load(cls, root: Path) -> Self:
        """Return the network of a running sandbox."""
        return cls(id=identify(root), range=IPv4Network(json.loads((root / _FILE).read_text())))

    def save(self, root: Path) -> None:
        """Keep the network for `load`."""
        (root / _FILE).write_text(json.dumps(str(self.range)))


def bridge_of(identity: str) -> str:
    """Return the name of the bridge of the sandbox with this id."""
    return f"{_PREFIX}{identity}"


def identify(root: Path) -> str:
    """Return the id of the sandbox in this folder: eight hex digits."""
    return hashlib.sha256(str(root).encode()).hexdigest()[:8]


def routed(table: str) -> tuple[IPv4Network, ...]:
    """Return the networks in `/proc/net/route`, the default route left out."""
    networks = []
    for line in table.splitlines()[1:]:
        _, destination, _, flags, _, _, _, mask, *_ = line.split()
        if int(flags, 16) & _UP and int(mask, 16):
            networks.append(IPv4Network((_little_endian(destination), str(_little_endian(mask)))))
    return tuple(networks)


def _little_endian(digits: str) -> IPv4Address:
    return IPv4Address(bytes.fromhex(digits)[::-1])


def name_servers(resolv_conf: str) -> tuple[IPv4Network, ...]:
    """Return the IPv4 name servers, which are often reached through the default route."""
    servers = []
    for line in resolv_conf.splitlines():
        word, _, address = line.strip().partition(" ")
        if word == "nameserver":
            with contextlib.suppress(ValueError):
                servers.append(IPv4Network(address.strip()))
    return tuple(servers)


def choose(taken: Iterable[IPv4Network], wanted: str = "") -> IPv4Network:
    """Return a free range: the wanted one, else the first candidate.

    Raises:
        SandboxError: it is not an IPv4 range, not a /16, or taken.
    """
    others = tuple(taken)
    candidates = (_parse(wanted),) if wanted else CANDIDATES
    for candidate in candidates:
        if not any(candidate.overlaps(other) for other in others):
            return candidate
    if not wanted:
        raise SandboxError(
            f"this machine uses every range from {CANDIDATES[0]} to {CANDIDATES[-1]}:"
            " name a free one with --real-network"
        )
    clash = next(other for other in others if candidates[0].overlaps(other))
    raise SandboxError(
        f"--real-network {wanted} overlaps {clash}, which this machine already uses:"
        " name another range, or omit the option for a free one"
    )


def _parse(wanted: str) -> IPv4Network:
    try:
        network = IPv4Network(wanted)
    except ValueError as error:
        raise SandboxError(f"--real-network {wanted}: {error}; expected 10.77.0.0/16") from None
    if network.prefixlen != 16:  # noqa: PLR2004  # a third number for each node
        raise SandboxError(f"--real-network {wanted}: expected a /16, such as 10.77.0.0/16")
    return network


def taken() -> tuple[IPv4Network, ...]:
    """Return the ranges that this machine already uses."""
    resolv_conf = Path("/etc/resolv.conf")
    servers = name_servers(resolv_conf.read_text()) if resolv_conf.exists() else ()
    return (*routed(Path("/proc/net/route").read_text()), *servers)


def claim(root: Path, ip: Path, *, nodes: int, wanted: str) -> Network:
    """Create the bridge of the sandbox in `root`, with routes to its pods.

    Args:
        root: the sandbox's folder.
        ip: iproute2's program.
        nodes: the number of nodes.
        wanted: a range, "" for a free one.

    Raises:
        SandboxError: the range is taken, or the bridge cannot be created.
    """
    with _one_at_a_time():  # two sandboxes that start at once must not choose the same range
        network = Network(id=identify(root), range=choose(taken(), wanted))
        network.save(root)
        bridge = network.bridge
        _run(ip, "link", "add", bridge, "type", "bridge")
        (INTERFACES / bridge / "ifalias").write_text(f"{ALIAS}{root}")
        _run(ip, "address", "add", f"{network.gateway}/24", "dev", bridge)
        _run(ip, "link", "set", bridge, "up")
        for index in range(nodes):
            route = (str(network.pods_of(index)), "via", network.address(index), "dev", bridge)
            _run(ip, "route", "add", *route)
    return network


def bridges() -> dict[str, Path]:
    """Return the bridges of all sandboxes on this machine, with their folders."""
    folders = {}
    for interface in INTERFACES.glob(f"{_PREFIX}*"):
        alias = (interface / "ifalias").read_text().strip()
        if alias.startswith(ALIAS):
            folders[interface.name] = Path(alias.removeprefix(ALIAS))
    return folders


def remove(bridge: str, ip: Path) -> None:
    """Delete a bridge; its routes go with it, the cables with their nodes.

    Raises:
        SandboxError: it stays.
    """
    if (INTERFACES / bridge).exists():
        _run(ip, "link", "delete", bridge)


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    descriptor = os.open("/run", os.O_RDONLY | os.O_DIRECTORY)  # a lock that leaves no file
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _run(ip: Path, *arguments: str) -> None:
    done = subprocess.run([str(ip), *arguments], check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SandboxError(
            f"ip {' '.join(arguments)}: {done.stderr.strip()}: run 'slurm-bridge sandbox check' to see"
            " what real nodes need"
        )
