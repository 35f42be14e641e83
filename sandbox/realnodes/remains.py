"""What real nodes leave on the host if everything is killed, and how it goes: bridges and cgroups.

Both are named after the sandbox's folder, and a bridge's alias says which folder that is. A sandbox
lives as long as its supervisor holds the folder's lock, so what belongs to nobody can be told.
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
    """What nobody owns any more."""

    bridges: tuple[str, ...]
    groups: tuple[str, ...]


def ownerless(
    bridges: Mapping[str, Path], groups: Iterable[str], is_alive: Callable[[Path], bool]
) -> Remains:
    """Return what belongs to no running sandbox.

    A group whose sandbox has no bridge is nobody's: the bridge comes first and goes last.

    Args:
        bridges: each sandbox's bridge and folder.
        groups: the names of cgroups.
        is_alive: whether the sandbox of a folder runs.
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
    """Remove what crashed sandboxes left behind, and return it.

    Raises:
        SandboxError: something of it cannot be removed.
    """
    here = cgroups.read(Path("/proc/self/mountinfo").read_text())
    groups = cgroups.names(here) if here is not None else set()
    left = ownerless(network.bridges(), groups, is_alive)
    _remove(left, ip)
    return left


def release(root: Path, ip: Path | None = None) -> None:
    """Remove what the sandbox of this folder has on the host; its parts have ended.

    Raises:
        SandboxError: something of it cannot be removed.
    """
    name = network.identify(root)
    here = cgroups.read(Path("/proc/self/mountinfo").read_text())
    groups = cgroups.names(here, f"{name}-") if here is not None else set()
    bridges = [bridge for bridge, folder in network.bridges().items() if folder == root]
    _remove(Remains(bridges=tuple(bridges), groups=tuple(sorted(groups))), ip)


def _remove(left: Remains, ip: Path | None) -> None:
    here = cgroups.layout() if left.groups else None
    for group in left.groups:
        if here is not None:
            cgroups.remove(here, group)
    for bridge in left.bridges:
        network.remove(bridge, ip or _ip())


def _ip() -> Path:
    """Return iproute2's program: this host's, else the cache's."""
    found = shutil.which("ip")
    if found is not None:
        return Path(found)
    node = assets.where([assets.AssetName.NODE])[assets.AssetName.NODE]
    if isinstance(node, assets.Asset):
        return node.bin / "ip"
    raise SandboxError(
        "a bridge of a sandbox is left, and there is no 'ip' to remove it:"
        " 'slurm-bridge sandbox fetch node', then repeat the command"
    )
