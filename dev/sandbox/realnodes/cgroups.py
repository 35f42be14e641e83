"""The cgroups of real nodes: find, create, freeze and remove them.

Version 1 has a hierarchy for each controller, version 2 one for all. Only version 1 has been run so
far; version 2 follows the kernel's documentation and is tested as values only.
"""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from sandbox.errors import SandboxError

CONTROLLERS = ("cpu", "cpuacct", "cpuset", "memory", "pids", "devices", "freezer")
"""The controllers of version 1 that a kubelet and runc need."""
CONTROLLERS_V2 = ("cpu", "cpuset", "memory", "pids")
PREFIX = "slurm-bridge-"
_INHERITED = ("cpuset.cpus", "cpuset.mems")
"""Empty in a new cpuset of version 1, which then takes no process."""
_REMOVAL_S = 20.0
_POLL_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How this machine arranges its cgroups."""

    version: int
    """1 or 2."""
    hierarchies: Mapping[str, Path]
    """Mount options -> mount point, as in `cpu,cpuacct`; version 2 has one, with no options."""

    def groups(self, name: str) -> tuple[Path, ...]:
        """Return the folders of one group."""
        return tuple(point / name for point in self.hierarchies.values())

    def missing(self, available: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the controllers that nodes need but that are missing.

        Args:
            available: version 2's `cgroup.controllers`.
        """
        if self.version == 1:
            mounted = {part for options in self.hierarchies for part in options.split(",")}
            return tuple(name for name in CONTROLLERS if name not in mounted)
        return tuple(name for name in CONTROLLERS_V2 if name not in available)


def read(mountinfo: str) -> Layout | None:
    """Return the layout in `/proc/self/mountinfo`, None if there are no cgroups.

    If both versions are mounted, the one with the memory controller counts.
    """
    first: dict[str, Path] = {}
    unified = None
    for line in mountinfo.splitlines():
        place, _, source = line.partition(" - ")
        kind, _, options = (*source.split(), "", "", "")[:3]
        point = Path(place.split()[4])
        if kind == "cgroup":
            own = [option for option in options.split(",") if option not in ("rw", "ro", "xattr")]
            first.setdefault(",".join(o for o in own if not o.startswith("release_agent")), point)
        elif kind == "cgroup2" and unified is None:
            unified = point
    if any("memory" in options.split(",") for options in first):
        return Layout(version=1, hierarchies=first)
    if unified is not None:
        return Layout(version=2, hierarchies={"": unified})
    return None


def layout() -> Layout:
    """Return this machine's layout.

    Raises:
        SandboxError: it mounts no cgroups.
    """
    current = read(Path("/proc/self/mountinfo").read_text())
    if current is None:
        raise SandboxError("real nodes need cgroups, and none are mounted: mount /sys/fs/cgroup")
    return current


def joined(here: Layout, text: str) -> tuple[Path, ...]:
    """Return the folders of the groups that a process is in, from its `/proc/PID/cgroup`."""
    paths = {}
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        paths[controllers] = path.lstrip("/")
    return tuple(
        point / paths[options] for options, point in here.hierarchies.items() if options in paths
    )


def create(here: Layout, name: str) -> None:
    """Create a group in every hierarchy, ready to take processes; it may exist."""
    if here.version == 2:  # noqa: PLR2004  # the version
        for point in here.hierarchies.values():
            wanted = " ".join(f"+{controller}" for controller in CONTROLLERS_V2)
            (point / "cgroup.subtree_control").write_text(wanted)
    for group in here.groups(name):
        group.mkdir(exist_ok=True)
        for file in _INHERITED if here.version == 1 else ():
            if (group / file).exists():
                (group / file).write_text((group.parent / file).read_text())


def freeze(here: Layout, name: str, *, frozen: bool) -> None:
    """Suspend every process in a group and below, or continue them."""
    if here.version == 1:
        freezers = (p for opts, p in here.hierarchies.items() if "freezer" in opts.split(","))
        files = {
            point / name / "freezer.state": "FROZEN" if frozen else "THAWED" for point in freezers
        }
    else:
        points = here.hierarchies.values()
        files = {point / name / "cgroup.freeze": "1" if frozen else "0" for point in points}
    for file, word in files.items():
        file.write_text(word)


def names(here: Layout, sandbox: str = "") -> set[str]:
    """Return the groups of all sandboxes, or of one by its id."""
    return {
        folder.name
        for point in here.hierarchies.values()
        for folder in point.glob(f"{PREFIX}{sandbox}*")
        if folder.is_dir()
    }


def remove(here: Layout, name: str) -> None:
    """Kill all processes in a group, frozen or not, and remove it.

    Raises:
        SandboxError: a process does not end.
    """
    with contextlib.suppress(OSError):
        freeze(here, name, frozen=False)  # a frozen process does not see SIGKILL
    deadline_s = time.monotonic() + _REMOVAL_S
    while left := [group for group in here.groups(name) if group.exists()]:
        for group in left:
            _remove(group)
        if time.monotonic() > deadline_s:
            raise SandboxError(
                f"{', '.join(map(str, left))} cannot be removed: end the processes that 'cat"
                f" {left[0]}/cgroup.procs' lists, and repeat the command"
            )
        time.sleep(_POLL_S)


def _remove(group: Path) -> None:
    for folder, _, _ in sorted(os.walk(group), reverse=True):
        with contextlib.suppress(OSError, ValueError):
            for pid in (Path(folder) / "cgroup.procs").read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        with contextlib.suppress(OSError):
            Path(folder).rmdir()
