"""Cgroups of both versions are recognised, made, frozen and removed; a folder stands in for the kernel.

Version 2 has been run nowhere yet but here: see docs/development.md.
"""

from pathlib import Path

import pytest

from sandbox.realnodes import cgroups
from sandbox.realnodes.cgroups import Layout

V1 = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 master:1 - cgroup cgroup rw,memory
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,xattr,release_agent=/x,name=systemd
"""
UNIFIED = "41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw\n"
V2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"


def test_version_1_counts_where_it_has_the_memory_controller() -> None:
    found = cgroups.read(V1 + UNIFIED)

    assert found is not None
    assert found.version == 1
    assert found.hierarchies == {
        "cpu,cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "memory": Path("/sys/fs/cgroup/memory"),
        "name=systemd": Path("/sys/fs/cgroup/systemd"),
    }
    assert found.missing() == ("cpuset", "pids", "devices", "freezer")


def test_version_2_counts_where_it_is_alone() -> None:
    found = cgroups.read(V2)

    assert found == Layout(version=2, hierarchies={"": Path("/sys/fs/cgroup")})
    assert found.missing(("cpu", "memory")) == ("cpuset", "pids")
    assert found.missing(("cpu", "cpuset", "memory", "pids", "io")) == ()


def test_a_machine_without_cgroups_has_no_layout() -> None:
    assert cgroups.read("22 1 0:20 / / rw - ext4 /dev/vda rw\n") is None


@pytest.fixture
def first(tmp_path: Path) -> Layout:
    for name in ("cpuset", "freezer"):
        (tmp_path / name).mkdir()
    (tmp_path / "cpuset" / "cpuset.cpus").write_text("0-1\n")
    (tmp_path / "cpuset" / "cpuset.mems").write_text("0\n")
    return Layout(
        version=1,
        hierarchies={"cpuset": tmp_path / "cpuset", "freezer": tmp_path / "freezer"},
    )


def test_a_cpuset_of_version_1_gets_its_parents_processors(first: Layout) -> None:
    group = first.hierarchies["cpuset"] / "slurm-bridge-1-real-0"
    group.mkdir()
    (group / "cpuset.cpus").touch()
    (group / "cpuset.mems").touch()

    cgroups.create(first, group.name)

    assert (group / "cpuset.cpus").read_text() == "0-1\n"
    assert cgroups.names(first) == {group.name}
    assert cgroups.names(first, "2") == set()


def test_version_1_is_frozen_by_the_freezer(first: Layout) -> None:
    cgroups.create(first, "g")
    state = first.hierarchies["freezer"] / "g" / "freezer.state"

    cgroups.freeze(first, "g", frozen=True)
    assert state.read_text() == "FROZEN"
    cgroups.freeze(first, "g", frozen=False)
    assert state.read_text() == "THAWED"


def test_version_2_hands_its_controllers_down_and_freezes_by_itself(tmp_path: Path) -> None:
    second = Layout(version=2, hierarchies={"": tmp_path})

    cgroups.create(second, "g")
    cgroups.freeze(second, "g", frozen=True)

    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu +cpuset +memory +pids"
    assert (tmp_path / "g" / "cgroup.freeze").read_text() == "1"


def test_a_group_is_removed_with_all_below_it(tmp_path: Path) -> None:
    here = Layout(version=1, hierarchies={"cpu": tmp_path})
    (tmp_path / "g" / "kubepods" / "pod1").mkdir(parents=True)

    cgroups.remove(here, "g")

    assert list(tmp_path.iterdir()) == []
