"""Reads and writes the cpusets of pods: cgroups v1 and v2, named by either of the kubelet's cgroup drivers.

The pod's cgroup is written, so containers that start later are confined from their first
instruction: a new cgroup inherits its parent's processors. The kubelet writes none of these files unless its
CPU manager is `static`.
"""

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.machine import read_cpus
from bridge.domain.model.cores import cpu_list
from slurmruntime.values.ids import PodUid

_CPUS = "cpuset.cpus"
_EFFECTIVE = "cpuset.cpus.effective"
_MOST_GROUPS = 256
"""Limit for cgroups inside a pod's; privileged containers can create their own."""
_CLASSES = ("", "burstable", "besteffort")


class NoCpusets(OSError):
    """A cgroup has no cpuset: the controller is disabled in the kernel or for the kubelet's cgroups."""


@dataclass(frozen=True, slots=True)
class Cgroups:
    """The cgroups of a node."""

    root: Path

    @property
    def is_v2(self) -> bool:
        """Whether the machine uses cgroups v2."""
        return (self.root / "cgroup.controllers").exists()

    @property
    def _top(self) -> Path:
        return self.root if self.is_v2 else self.root / "cpuset"

    def of(self, uid: PodUid) -> Path | None:
        """Return a pod's cgroup; None if the kubelet has not created it yet, or has removed it."""
        return next((path for path in self._candidates(uid) if path.is_dir()), None)

    def _candidates(self, uid: PodUid) -> Iterator[Path]:
        for quality in _CLASSES:
            yield self._top / "kubepods" / quality / f"pod{uid}"
            middle = f"-{quality}" if quality else ""
            parent = self._top / "kubepods.slice"
            parent = parent / f"kubepods{middle}.slice" if quality else parent
            yield parent / f"kubepods{middle}-pod{uid.replace('-', '_')}.slice"

    def allowed(self, group: Path) -> frozenset[int]:
        """Return the processors that a pod can have at most: its parent's.

        Raises:
            NoCpusets: processes there cannot be confined.
            OSError: the file could not be read.
        """
        with _tell_apart():
            return read_cpus(group.parent / (_EFFECTIVE if self.is_v2 else _CPUS))

    def confine(self, group: Path, cpus: Collection[int]) -> bool:
        """Confine a pod to these processors; return whether anything was written.

        Raises:
            NoCpusets: processes there cannot be confined.
            OSError: the file could not be written, for example because a container just started.
        """
        with _tell_apart():
            return self._confine_v2(group, cpus) if self.is_v2 else self._confine_v1(group, cpus)

    def _confine_v2(self, group: Path, cpus: Collection[int]) -> bool:
        # Inner cgroups have no cpuset of their own: the kernel limits all of them to this one.
        wanted = frozenset(cpus)
        wanted = frozenset() if wanted == self.allowed(group) else wanted
        if read_cpus(group / _CPUS) == wanted:
            return False
        # An empty line removes the restriction.
        (group / _CPUS).write_text(cpu_list.render(wanted) + "\n")
        return True

    def _confine_v1(self, group: Path, cpus: Collection[int]) -> bool:
        # A cgroup must never have a processor that its parent lacks.
        wanted = frozenset(cpus)
        present = read_cpus(group / _CPUS)
        below = list(_below(group))
        if present == wanted and all(_fits(group, inner, wanted) for inner in below):
            return False
        if not wanted <= present:
            _write(group, wanted | present)
            for inner in below:
                _write(inner, wanted | read_cpus(inner / _CPUS))
        for inner in reversed(below):
            _write(inner, wanted)
        _write(group, wanted)
        return True


@contextlib.contextmanager
def _tell_apart() -> Iterator[None]:
    """Distinguish a cgroup without a cpuset from one that has just been removed: in both cases, the file is missing."""
    try:
        yield
    except FileNotFoundError as error:
        file = Path(error.filename)
        if file.name not in (_CPUS, _EFFECTIVE) or not file.parent.is_dir():
            raise
        raise NoCpusets(
            f"{file.parent} has no {file.name}: expected the controller cpuset there "
            "(cgroup.controllers), which the kubelet enables for pods"
        ) from error


def _fits(pod: Path, group: Path, wanted: frozenset[int]) -> bool:
    """Check whether a cgroup inside a pod's needs no write.

    One that a container created may have fewer processors. The container's own must be equal: an
    agent that died while it gave back processors had changed the pod's first.
    """
    cpus = read_cpus(group / _CPUS)
    return cpus == wanted if group.parent == pod else cpus <= wanted


def _below(group: Path) -> Iterator[Path]:
    """Yield the cgroups inside, parents first.

    Raises:
        OSError: there are more than the limit; the rest is not listed.
    """
    groups = [group]
    for parent in groups:
        with os.scandir(parent) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if len(groups) > _MOST_GROUPS:
                    raise OSError(
                        f"{group} has more than {_MOST_GROUPS} cgroups inside: it is not pinned"
                    )
                groups.append(Path(entry.path))
    yield from groups[1:]


def _write(group: Path, cpus: Collection[int]) -> None:
    (group / _CPUS).write_text(cpu_list.render(cpus))
