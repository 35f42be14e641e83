"""Remove what real nodes leave on the host if everything is killed: bridges and cgroups.

Both are named after the sandbox's folder, and a bridge's alias names that folder. A sandbox lives as
long as its supervisor holds the folder's lock, so remains without an owner can be identified.
"""

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox import assets
from sandbox.errors import SandboxError
from sandbox.realnodes import cgroups, network


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """Bridges and cgroups without an owner."""

    bridges: tuple[str, ...]
    groups: tuple[str, ...]


def ownerless(
    bridges: Mapping[str, Path], groups: Iterable[str], is_alive: Callable[[Path], bool]
) -> Remains:
    """Return the bridges and cgroups that belong to no running sandbox.

    A group whose sandbox has no bridge has no owner: the bridge is created first and deleted last.

    Args:
        bridges: each sandbox's bridge and folder.
        groups: the names of cgroups.
        is_alive: whether the sandbox of a folder is running.
    """
    dead = tuple(sorted(bridge for bridge, folder in bridges.items() if not is_alive(folder)))
    living = {bridge.rpartition("-")[2] for bridge in bridges if bridge not in dead}
    return Remains(
        bridges=dead,
        groups=tuple(
            sorted(
                group
                for group in groups
                if group.removeprefix(cgroups.PREFIX).partition("-")[0] not in living
            )
        ),
    )


def sweep(is_alive: Callable[[Path], bool], ip: Path | None = None) -> Remains:
    """Remove the remains of crashed sandboxes, and return them.

    Raises:
        SandboxError: something cannot be removed.
    """
    here = cgroups.read(Path("/proc/self/mountinfo").read_text())
    groups = cgroups.names(here) if here is not None else set()
    left = ownerless(network.bridges(), groups, is_alive)
    _remove(left, ip)
    return left


def release(root: Path, ip: Path | None = None) -> None:
    """Remove the bridge and cgroups of the sandbox in this folder, after its parts have ended.

    Raises:
        SandboxError: something cannot be removed.
    """
    name = network.identify(root)
    bridge = network.bridge_of(name)  # by its name: it may have died before its alias was written
    here = cgroups.read(Path("/proc/self/mountinfo").read_text())
    groups = cgroups.names(here, f"{name}-") if here is not None else set()
    bridges = (bridge,) if (network.INTERFACES / bridge).exists() else ()
    _remove(Remains(bridges=bridges, groups=tuple(sorted(groups))), ip)


def _remove(left: Remains, ip: Path | None) -> None:
    here = cgroups.layout() if left.groups else None
    for group in left.groups:
        if here is not None:
            cgroups.remove(here, group)
    for bridge in left.bridges:
        network.remove(bridge, ip or _ip())


def _ip() -> Path:
    """Return iproute2's program: this host's, else the cache's."""
    program = shutil.which("ip")
    if program is not None:
        return Path(program)
    node = assets.where([assets.AssetName.NODE])[assets.AssetName.NODE]
    if isinstance(node, assets.Asset):
        return node.bin / "ip"
    raise SandboxError(
        "a sandbox left a bridge behind, and there is no 'ip' to remove it:"
        " run 'slurm-bridge sandbox fetch node', then repeat the command"
    )
