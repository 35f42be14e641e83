"""Paths and files of both versions of cgroups, in folders that stand for them; `tests/realnodes` has the kernel's."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.cgroups import Cgroups, NoCpusets
from slurmruntime.values.ids import PodUid
from tests.agent.groups import v1

UID = PodUid("1b-2c")


def v2(root: Path, group: str) -> Path:
    (root / "cgroup.controllers").write_text("cpuset cpu\n")
    made = root / group
    made.mkdir(parents=True)
    (made.parent / "cpuset.cpus.effective").write_text("0-3\n")
    (made / "cpuset.cpus").write_text("\n")
    return made


class Listing:
    """Counts what is read of a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scandir = os.scandir
        self.entries = 0

    @contextlib.contextmanager
    def scandir(self, path: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
        with self._scandir(path) as entries:
            yield self._counted(entries) if path == self._folder else entries

    def _counted(self, entries: Iterator[os.DirEntry[str]]) -> Iterator[os.DirEntry[str]]:
        for entry in entries:
            self.entries += 1
            yield entry


@pytest.mark.parametrize(
    "group",
    [
        "kubepods/pod1b-2c",
        "kubepods/burstable/pod1b-2c",
        "kubepods/besteffort/pod1b-2c",
        "kubepods.slice/kubepods-pod1b_2c.slice",
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b_2c.slice",
        "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod1b_2c.slice",
    ],
)
def test_a_pods_group_is_found_by_the_names_of_both_drivers(tmp_path: Path, group: str) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    second.mkdir()

    assert v1(first, group) == Cgroups(first).of(UID)
    assert v2(second, group) == Cgroups(second).of(UID)
    assert Cgroups(tmp_path).of(UID) is None


def test_version_1_confines_the_pod_and_every_container(tmp_path: Path) -> None:
    group = v1(tmp_path, "kubepods/pod1b-2c", "c", "c/inner", "pause")
    cgroups = Cgroups(tmp_path)

    assert cgroups.confine(group, {1})
    assert {"1"} == {file.read_text() for file in group.rglob("cpuset.cpus")}
    assert not cgroups.confine(group, {1})
    assert cgroups.confine(group, cgroups.allowed(group))
    assert {"0-3"} == {file.read_text() for file in group.rglob("cpuset.cpus")}


def test_version_1_confines_a_container_that_began_in_between(tmp_path: Path) -> None:
    group = v1(tmp_path, "kubepods/pod1b-2c", "c")
    cgroups = Cgroups(tmp_path)
    cgroups.confine(group, {1})
    (group / "c" / "cpuset.cpus").write_text("0-1")

    assert cgroups.confine(group, {1})
    assert "1" == (group / "c" / "cpuset.cpus").read_text()


def test_version_1_frees_the_containers_of_a_pod_that_a_killed_agent_had_begun_to_free(
    tmp_path: Path,
) -> None:
    group = v1(tmp_path, "kubepods/pod1b-2c", "c", "pause")
    cgroups = Cgroups(tmp_path)
    cgroups.confine(group, {1})
    (group / "cpuset.cpus").write_text("0-3")  # a pod's group comes first when it gets more

    assert cgroups.confine(group, cgroups.allowed(group))
    assert {"0-3"} == {file.read_text() for file in group.rglob("cpuset.cpus")}
    assert not cgroups.confine(group, cgroups.allowed(group))


def test_version_1_leaves_alone_what_a_container_made_for_itself(tmp_path: Path) -> None:
    group = v1(tmp_path, "kubepods/pod1b-2c", "c", "c/inner")
    (group / "c" / "inner" / "cpuset.cpus").write_text("2")

    assert not Cgroups(tmp_path).confine(group, {0, 1, 2, 3})


def test_version_2_confines_the_pod_alone_and_an_empty_line_frees_it(tmp_path: Path) -> None:
    group = v2(tmp_path, "kubepods.slice/kubepods-pod1b_2c.slice")
    cgroups = Cgroups(tmp_path)

    assert cgroups.confine(group, {0, 1})
    assert "0-1\n" == (group / "cpuset.cpus").read_text()
    assert not cgroups.confine(group, {0, 1})
    assert cgroups.confine(group, cgroups.allowed(group))
    assert "\n" == (group / "cpuset.cpus").read_text()
    assert not cgroups.confine(group, cgroups.allowed(group))


@pytest.mark.parametrize("absent", ["cpuset.cpus.effective", "kubepods-pod1b_2c.slice/cpuset.cpus"])
def test_version_2_tells_groups_without_the_cpuset_controller_from_a_pod_that_has_gone(
    tmp_path: Path, absent: str
) -> None:
    """As a kernel has them whose `cgroup.subtree_control` lacks cpuset: the folders are there, the files are not."""
    group = v2(tmp_path, "kubepods.slice/kubepods-pod1b_2c.slice")
    cgroups = Cgroups(tmp_path)
    (tmp_path / "kubepods.slice" / absent).unlink()

    with pytest.raises(NoCpusets, match="controller cpuset"):
        cgroups.confine(group, {0} if cgroups.allowed(group) else {1})


def test_a_pod_that_has_just_gone_is_no_fault_of_the_machine(tmp_path: Path) -> None:
    group = v1(tmp_path, "kubepods/pod1b-2c", "c")
    shutil.rmtree(group)

    with pytest.raises(FileNotFoundError):
        Cgroups(tmp_path).confine(group, {1})


def test_a_pod_with_very_many_groups_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no more of them are looked at than it takes to tell."""
    group = v1(tmp_path, "kubepods/pod1b-2c", *(f"c{number}" for number in range(300)))
    listed = Listing(group)
    monkeypatch.setattr(os, "scandir", listed.scandir)

    with pytest.raises(OSError, match="not pinned"):
        Cgroups(tmp_path).confine(group, {1})

    assert listed.entries <= 258  # with the pod's own file
