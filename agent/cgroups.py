"""The cpuset of a pod: cgroups of version 1 and 2, as the kubelet's two cgroup drivers name them.

The whole pod's group is written, so containers that start later are confined from their first
instruction: a new group has its parent's processors. The kubelet writes none of these files unless its
CPU manager is `static`.
"""

import contextlib
import os
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from bridge.domain.model.cores import cpu_list
from slurmruntime.values.ids import PodUid

_CPUS = "cpuset.cpus"
_EFFECTIVE = "cpuset.cpus.effective"
_MOST_GROUPS = 256
"""Groups inside a pod's; containers may make their own where they are privileged."""
_CLASSES = ("", "burstable", "besteffort")


class NoCpusets(OSError):
    """A group has no cpuset: the kernel or the kubelet's groups have the controller off."""


@dataclass(frozen=True, slots=True)
class Cgroups:
    """Where a node's cgroups are."""

    root: Path

    @property
    def is_v2(self) -> bool:
        """Check which version the machine has."""
        return (self.root / "cgroup.controllers").exists()

    @property
    def _top(self) -> Path:
        return self.root if self.is_v2 else self.root / "cpuset"

    def of(self, uid: PodUid) -> Path | None:
        """Return a pod's group; None if the kubelet has not made it yet, or has removed it."""
        return next((path for path in self._candidates(uid) if path.is_dir()), None)

    def _candidates(self, uid: PodUid) -> Iterator[Path]:
        for quality in _CLASSES:
            yield self._top / "kubepods" / quality / f"pod{uid}"
            middle = f"-{quality}" if quality else ""
            parent = self._top / "kubepods.slice"
            parent = parent / f"kubepods{middle}.slice" if quality else parent
            yield parent / f"kubepods{middle}-pod{uid.replace('-', '_')}.slice"

    def allowed(self, group: Path) -> frozenset[int]:
        """Return the processors that a pod may have at all: its parent's.

        Raises:
            NoCpusets: nothing there can be confined.
            OSError: they could not be read.
        """
        with _told_apart():
            return _read(group.parent / (_EFFECTIVE if self.is_v2 else _CPUS))

    def confine(self, group: Path, cpus: Collection[int]) -> bool:
        """Give a pod these processors and no others; return whether anything was to be done.

        Raises:
            NoCpusets: nothing there can be confined.
            OSError: it could not be written now, as when a container started meanwhile.
        """
        with _told_apart():
            return self._confine_v2(group, cpus) if self.is_v2 else self._confine_v1(group, cpus)

    def _confine_v2(self, group: Path, cpus: Collection[int]) -> bool:
        # Groups below have no processors of their own: the kernel cuts all of them down to these.
        wanted = frozenset(cpus)
        wanted = frozenset() if wanted == self.allowed(group) else wanted
        if _read(group / _CPUS) == wanted:
            return False
        # An empty line is what takes the restriction away.
        (group / _CPUS).write_text(cpu_list.written(wanted) + "\n")
        return True

    def _confine_v1(self, group: Path, cpus: Collection[int]) -> bool:
        # A group may not have a processor that its parent lacks, at no moment.
        wanted = frozenset(cpus)
        present = _read(group / _CPUS)
        below = list(_below(group))
        if present == wanted and all(_fits(group, each, wanted) for each in below):
            return False
        if not wanted <= present:
            _write(group, wanted | present)
            for each in below:
                _write(each, wanted | _read(each / _CPUS))
        for each in reversed(below):
            _write(each, wanted)
        _write(group, wanted)
        return True


@contextlib.contextmanager
def _told_apart() -> Iterator[None]:
    """Tell a group without the file from one that has just gone: both times the file is not there."""
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
    """Check whether a group inside a pod's needs no write; what a container makes may have fewer.

    A container itself may not: an agent that died while it gave back processors had begun with the pod.
    """
    found = _read(group / _CPUS)
    return found == wanted if group.parent == pod else found <= wanted


def _below(group: Path) -> Iterator[Path]:
    """Yield the groups inside, parents first.

    Raises:
        OSError: there are too many to be a pod's; no more than those are listed.
    """
    found = [group]
    for parent in found:
        with os.scandir(parent) as entries:
            for entry in entries:
                if not entry.is_dir(follow_symlinks=False):
                    continue
                if len(found) > _MOST_GROUPS:
                    raise OSError(
                        f"{group} has more than {_MOST_GROUPS} groups inside: it is left alone"
                    )
                found.append(Path(entry.path))
    yield from found[1:]


def _read(file: Path) -> frozenset[int]:
    cpus = cpu_list.parse(file.read_text())
    if cpus is None:
        raise OSError(f"{file} has no list of processors")
    return cpus


def _write(group: Path, cpus: Collection[int]) -> None:
    (group / _CPUS).write_text(cpu_list.written(cpus))
