"""What keeps real nodes from running is told at once, before anything starts, with what to do."""

from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.assets import Absent, AssetName
from sandbox.realnodes import check, privileges, remains
from sandbox.realnodes.cgroups import Layout
from sandbox.realnodes.check import Facts, Finding, findings

GOOD = Facts(
    uid=0,
    nodes=2,
    capabilities=frozenset(privileges.NAMES),
    layout=Layout(version=1, hierarchies={}),
    state=Path("/state"),
)


def stopping(facts: Facts) -> list[Finding]:
    return [finding for finding in findings(facts) if finding.stops]


def test_a_machine_with_everything_has_no_fault() -> None:
    assert findings(GOOD) == ()


def test_without_root_only_that_is_told_and_what_goes_without() -> None:
    (finding,) = findings(replace(GOOD, uid=1000, layout=None))

    assert finding.stops
    assert finding.what.startswith("real nodes need root")
    assert "sudo" in finding.remedy
    assert "simulated nodes need no root" in finding.remedy


@pytest.mark.parametrize(
    ("facts", "what", "remedy"),
    [
        (
            replace(GOOD, capabilities=frozenset({privileges.SYS_RESOURCE})),
            "root has no CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_MKNOD here",
            "privileged",
        ),
        (replace(GOOD, missing_commands=("unshare",)), "no unshare on PATH", "util-linux"),
        (replace(GOOD, layout=None), "no cgroups are mounted", "/sys/fs/cgroup"),
        (
            replace(GOOD, missing_controllers=("pids",)),
            "cgroups of version 1 lack pids",
            "kernel's command line",
        ),
        (
            replace(GOOD, unwritable_groups=("/sys/fs/cgroup/cpu: Read-only file system",)),
            "no cgroup can be created: /sys/fs/cgroup/cpu: Read-only file system",
            "privileged",
        ),
        (
            replace(GOOD, failed_trials={"overlayfs": "unknown filesystem type"}),
            "overlayfs does not work here: unknown filesystem type",
            "modprobe overlay",
        ),
        (
            replace(GOOD, failed_trials={"nftables": "Operation not supported"}),
            "nftables does not work here",
            "modprobe nf_tables",
        ),
        (
            replace(GOOD, failed_trials={"bridge": "Operation not permitted"}),
            "bridge does not work here",
            "CAP_NET_ADMIN",
        ),
        (
            replace(GOOD, free_mib=2047),
            "/state has 2047 MiB free, 2 real nodes need 2048",
            "larger disk",
        ),
        (
            replace(GOOD, network_fault="--real-network 10.1.0.0/16 overlaps 10.0.0.0/8: name one"),
            "--real-network 10.1.0.0/16 overlaps 10.0.0.0/8",
            "name one",
        ),
        (
            replace(
                GOOD,
                is_offline=True,
                assets={AssetName.NODE: Absent(name=AssetName.NODE, reason="x is incomplete")},
            ),
            "node: x is incomplete, and SANDBOX_OFFLINE forbids fetching it",
            "sandbox fetch node",
        ),
    ],
)
def test_each_fault_is_told_with_what_to_do(facts: Facts, what: str, remedy: str) -> None:
    (finding,) = stopping(facts)

    assert what in finding.what
    assert remedy in finding.remedy


def test_all_faults_are_told_at_once() -> None:
    assert len(stopping(replace(GOOD, layout=None, free_mib=0, missing_commands=("mount",)))) == 3


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        (
            replace(GOOD, capabilities=frozenset(privileges.NAMES) - {privileges.SYS_RESOURCE}),
            "no CAP_SYS_RESOURCE",
        ),
        (replace(GOOD, layout=Layout(version=2, hierarchies={})), "have not been tested yet"),
        (
            replace(GOOD, others=(Path("/other"),)),
            "other sandboxes with real nodes are running: /other",
        ),
        (replace(GOOD, left_behind=("sb-0",)), "a killed sandbox left sb-0 behind"),
        (
            replace(GOOD, assets={AssetName.NODE: Absent(name=AssetName.NODE, reason="missing")}),
            "node: missing",
        ),
    ],
)
def test_what_does_no_harm_is_a_note(facts: Facts, what: str) -> None:
    (finding,) = findings(facts)

    assert what in finding.what
    assert not finding.stops


def test_capabilities_are_read_from_the_kernels_mask() -> None:
    found = privileges.parse("Name:\tx\nCapEff:\t000001fffeffffff\nCapBnd:\t0\n")

    assert privileges.SYS_RESOURCE not in found
    assert {privileges.SYS_ADMIN, privileges.NET_ADMIN, privileges.MKNOD} <= found


def test_every_trial_has_a_remedy() -> None:
    assert set(check.TRIALS) == {"overlayfs", "bridge", "nftables"}


def test_only_what_belongs_to_no_running_sandbox_is_left_behind() -> None:
    left = remains.ownerless(
        {"sb-11111111": Path("/alive"), "sb-22222222": Path("/dead")},
        [
            "slurm-bridge-11111111-real-0",
            "slurm-bridge-22222222-real-0",
            "slurm-bridge-33333333-real-1",
        ],
        lambda folder: folder == Path("/alive"),
    )

    assert left.bridges == ("sb-22222222",)
    assert left.groups == ("slurm-bridge-22222222-real-0", "slurm-bridge-33333333-real-1")
