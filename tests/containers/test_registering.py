"""slurmd as its entry point runs it, with a real slurmctld that forgets its node."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import assets, slurm
from sandbox.assets import AssetName
from sandbox.client import Sandbox
from sandbox.options import Options
from tests.containers.entrypoint import Entrypoint
from tests.servers import running_sandbox, wait_until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.getuid() != 0, reason="NOT RUN: a real slurmd needs root; CI runs this as root"
    ),
]
NODE = "worker-7"
REGISTERS_S = 30
"""After slurmctld can answer again."""


class Worker:
    """A slurmd that has made its own node."""

    def __init__(self, sandbox: Sandbox, root: Path) -> None:
        self.sandbox = sandbox
        asset = assets.resolve(AssetName.SLURM, report=lambda _: None)
        it = Entrypoint(root, "slurmd")
        conf = root / "slurm.conf"
        own = f"SlurmdUser=root\nSlurmdSpoolDir={root}/spool-%n\nSlurmdPidFile={root}/pid\n"
        conf.write_text(f"{sandbox.slurm_conf.read_text()}\n{own}")
        (root / "cgroup.conf").write_text("CgroupPlugin=disabled\n")
        settings = {**slurm.daemon_environment(sandbox.instance, asset), "SLURM_CONF": str(conf)}
        words = (*(f"{key}={value}" for key, value in settings.items()), str(asset.bin / "slurmd"))
        it.write("slurmd", f'#!/bin/sh\nexec env {shlex.join(words)} "$@"\n')
        for command in ("sinfo", "scontrol"):
            real = sandbox.instance.bin / command
            it.write(command, f'#!/bin/sh\necho "$@" >> "$0.asked"\nexec {real} "$@"\n')
        place = f"NodeAddr=127.0.0.1 NodeHostname={slurm_host(sandbox)} Port={sandbox.instance.ports['slurmd']}"
        size = "CPUs=2 RealMemory=1000 Feature=slurm-bridge"
        self.process = it.start(
            *("-Z", "-N", NODE, "-f", str(conf)),
            *("-d", str(asset.bin / "slurmstepd"), "--conf", f"'{place} {size}'"),
            SLURM_CONF=str(sandbox.slurm_conf),
            SLURM_JWT=sandbox.token(),
        )
        self.it = it

    def is_idle(self) -> bool:
        """Whether Slurm has its node and would start jobs there."""
        return self.sandbox.run("sinfo", "-hN", "-n", NODE, "-o", "%T").split() == ["idle"]

    def asked(self, command: str) -> int:
        """How often it has asked slurmctld."""
        return len((self.it.bin / f"{command}.asked").read_text().splitlines())


def slurm_host(sandbox: Sandbox) -> str:
    lines = sandbox.slurm_conf.read_text().splitlines()
    (said,) = (line for line in lines if line.startswith("SlurmctldHost="))
    return said.removeprefix("SlurmctldHost=").partition("(")[0]


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    with running_sandbox(Options(kubernetes=False, bridge=False, nodes=1)) as sandbox:
        it = Worker(sandbox, tmp_path / "slurmd")
        try:
            wait_until(it.is_idle, REGISTERS_S)
            yield it
        finally:
            it.it.end()


def test_it_registers_again_with_a_slurmctld_that_has_lost_its_state(worker: Worker) -> None:
    sandbox = worker.sandbox
    sandbox.stop("slurmctld")
    for each in (sandbox.slurm_conf.parent / "state").iterdir():
        if each.is_file():
            each.unlink()
    sandbox.start("slurmctld")

    wait_until(worker.is_idle, REGISTERS_S)
    assert "slurmctld does not have node worker-7" in worker.it.errors
    assert worker.process.poll() is None


def test_it_registers_again_after_its_record_was_deleted(worker: Worker) -> None:
    worker.sandbox.run("scontrol", "delete", f"nodename={NODE}")

    wait_until(worker.is_idle, REGISTERS_S)


def test_a_node_without_a_partition_is_let_be(worker: Worker) -> None:
    sandbox, conf = worker.sandbox, worker.sandbox.slurm_conf
    lines = conf.read_text().splitlines()
    kept = [line for line in lines if not line.startswith(("PartitionName=", "NodeSet="))]
    conf.write_text("\n".join([*kept, "PartitionName=none", ""]))
    sandbox.run("scontrol", "reconfigure")
    wait_until(lambda: not worker.is_idle(), REGISTERS_S)
    # sinfo is as silent now as about a node that is not there.
    wait_until((worker.it.bin / "scontrol.asked").exists, REGISTERS_S)
    wait_until(lambda: worker.asked("scontrol") > 1, REGISTERS_S)

    assert "slurmd registers again" not in worker.it.errors
    assert f"NodeName={NODE} " in sandbox.run("scontrol", "show", "node", NODE)
