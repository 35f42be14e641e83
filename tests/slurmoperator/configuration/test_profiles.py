"""What Slurm's files say where workers run without privileges, and what does not go with that."""

from typing import Any

import msgspec
import pytest

from slurmoperator.configuration.rendering import render
from slurmoperator.objects.nodeset import NodeSetObject
from slurmoperator.objects.own.profiles import PROFILE_ANNOTATION
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.configuration.given import files, inputs, node_set

PLAIN = {
    "ProctrackType=proctrack/linuxproc",
    "TaskPlugin=task/none",
    "JobAcctGatherType=jobacct_gather/linux",
}


def with_profile(name: str, profile: str) -> NodeSetObject:
    found = node_set(name)
    metadata = msgspec.structs.replace(found.metadata, annotations={PROFILE_ANNOTATION: profile})
    return msgspec.structs.replace(found, metadata=metadata)


def test_plain_workers_do_without_control_groups() -> None:
    made = files(inputs(with_profile("cpu", "plain"), with_profile("gpu", "plain")))
    assert {*made["slurm.conf"].splitlines()} >= PLAIN
    assert "CgroupPlugin=disabled\n" == made["cgroup.conf"]


@pytest.mark.parametrize("others", [(), (node_set("cpu"),), (with_profile("cpu", "privileged"),)])
def test_others_have_slurms_own_way(others: tuple[NodeSetObject, ...]) -> None:
    made = files(inputs(*others))
    assert not PLAIN & {*made["slurm.conf"].splitlines()}
    assert "CgroupPlugin=cgroup/v2\nIgnoreSystemd=yes\n" == made["cgroup.conf"]


def test_what_the_user_says_and_needs_no_control_groups_counts() -> None:
    given = inputs(with_profile("cpu", "plain"), extraConf="TaskPlugin=task/affinity")
    lines = files(given)["slurm.conf"].splitlines()
    assert "TaskPlugin=task/affinity" in lines
    assert "TaskPlugin=task/none" not in lines


FILES: dict[str, Any] = {"configFileRefs": [{"name": "files"}]}


@pytest.mark.parametrize(
    ("spec", "cgroup", "wrong"),
    [
        ({"extraConf": "ProctrackType=proctrack/cgroup"}, "", "have no cgroups"),
        ({"extraConf": "TaskPlugin=task/affinity,task/cgroup"}, "", "have no cgroups"),
        ({"extraConf": "JobContainerType=job_container/tmpfs"}, "", "cannot mount"),
        (FILES, "CgroupPlugin=cgroup/v2\n", "expected CgroupPlugin=disabled"),
        (FILES, "ConstrainCores=yes\n", "expected CgroupPlugin=disabled"),
    ],
)
def test_what_needs_privileges_is_refused(spec: dict[str, Any], cgroup: str, wrong: str) -> None:
    maps = {"files": {"cgroup.conf": cgroup}} if cgroup else {}
    with pytest.raises(Refusal) as refused:
        render(inputs(with_profile("cpu", "plain"), config_maps=maps, **spec))
    assert wrong in refused.value.text


def test_a_cgroup_conf_that_does_without_them_is_taken() -> None:
    maps = {"files": {"cgroup.conf": "CgroupPlugin=disabled\n"}}
    made = files(inputs(with_profile("cpu", "plain"), config_maps=maps, **FILES))
    assert "CgroupPlugin=disabled\n" == made["cgroup.conf"]


@pytest.mark.parametrize("other", [node_set("gpu"), with_profile("gpu", "privileged")])
def test_there_is_one_profile_in_a_cluster(other: NodeSetObject) -> None:
    with pytest.raises(Refusal) as refused:
        render(inputs(with_profile("cpu", "plain"), other))
    assert "NodeSet gpu" in refused.value.text
    assert "NodeSet cpu has the profile plain" in refused.value.text
