"""The kernel's own cpusets (cgroups of version 1, as root): what a pod's processes may use, as they see it themselves."""

import contextlib
import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import machine
from agent.cgroups import Cgroups
from bridge.domain.model.cores import cpu_list
from slurmruntime.values.ids import PodUid

CPUSET = Path("/sys/fs/cgroup/cpuset")
ORDER = machine.order(Path("/sys/devices/system"))


class Pod:
    """A pod's group with a container's, and a process in that."""

    def __init__(self, parent: Path, uid: str) -> None:
        self.group = made(parent / f"pod{uid}")
        self.inner = made(self.group / "container")
        self.process = subprocess.Popen(("/bin/sleep", "600"))
        (self.inner / "cgroup.procs").write_text(str(self.process.pid))

    def allowed(self) -> frozenset[int]:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        match = re.search(r"Cpus_allowed_list:\s*(\S+)", status)
        assert match
        return cpu_list.parse(match[1]) or frozenset()

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for path in sorted(self.group.rglob("*"), key=lambda path: -len(path.parts)):
            if path.is_dir():
                path.rmdir()
        self.group.rmdir()


def made(group: Path) -> Path:
    """Make a group as runc does: with its parent's processors and memory."""
    group.mkdir()
    inherit(group)
    return group


def inherit(group: Path) -> None:
    for file in ("cpuset.cpus", "cpuset.mems"):
        (group / file).write_text((group.parent / file).read_text())


@pytest.fixture
def node() -> Iterator[Path]:
    if os.getuid() or not (CPUSET / "cpuset.cpus").exists() or len(ORDER) < 2:
        pytest.skip("needs root, cpusets of version 1 and two processors")
    root = made(CPUSET / f"slurm-bridge-test-{os.getpid()}")
    made(root / "kubepods")
    yield root
    (root / "kubepods").rmdir()
    root.rmdir()


@pytest.fixture
def cgroups(node: Path, tmp_path: Path) -> Cgroups:
    (tmp_path / "cpuset").symlink_to(node)
    return Cgroups(tmp_path)


@pytest.fixture
def pod(node: Path) -> Iterator[Pod]:
    found = Pod(node / "kubepods", "a")
    yield found
    found.end()


def confined(cgroups: Cgroups, cpus: frozenset[int]) -> None:
    group = cgroups.of(PodUid("a"))
    assert group is not None
    cgroups.confine(group, cpus)


def test_a_process_that_runs_is_moved_and_freed_again(cgroups: Cgroups, pod: Pod) -> None:
    everything = pod.allowed()
    one = frozenset({ORDER[1]})

    confined(cgroups, one)
    assert one == pod.allowed()
    confined(cgroups, frozenset({ORDER[0]}))
    assert {ORDER[0]} == pod.allowed()
    confined(cgroups, everything)
    assert everything == pod.allowed()


def test_a_container_that_starts_later_has_its_pods_processors(cgroups: Cgroups, pod: Pod) -> None:
    confined(cgroups, frozenset({ORDER[1]}))

    later = made(pod.group / "later")

    assert str(ORDER[1]) == (later / "cpuset.cpus").read_text().strip()


def start_container(group: Path) -> None:
    """As the kubelet does, which tries again."""
    group.mkdir()
    for _ in range(100):
        with contextlib.suppress(
            PermissionError
        ):  # the pod was confined between reading and writing
            return inherit(group)
    raise AssertionError(f"{group} cannot have its pod's processors")


def test_containers_that_start_meanwhile_are_confined_at_the_next_look(
    cgroups: Cgroups, pod: Pod
) -> None:
    one, done = frozenset({ORDER[1]}), threading.Event()

    def start() -> None:
        try:
            for number in range(50):
                start_container(pod.group / f"c{number}")
        finally:
            done.set()

    thread = threading.Thread(target=start)
    thread.start()
    while not done.is_set():
        try:
            confined(cgroups, one)
        except OSError:
            continue  # as the agent does: looked at again
    thread.join()
    confined(cgroups, one)

    assert {str(ORDER[1])} == {file.read_text().strip() for file in pod.group.rglob("cpuset.cpus")}
