"""A real slurmctld starts with the files that we make; a typing error, which we find, ends it."""

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from random import Random

import pytest

from sandbox import assets, identity, nss, ports, slurm
from sandbox.assets import Asset, AssetName
from sandbox.instance import make_folder, write_private
from slurmoperator.configuration.rendering import render
from slurmruntime.values.faults import Refusal
from tests.servers import wait_until
from tests.slurmoperator.configuration.given import files, inputs, node_set

FULL = {
    "extraConf": "SchedulerParameters=bf_interval=5,\\\nbf_window=60 # minutes\n"
    "SlurmctldParameters=idle_on_node_suspend\nMinJobAge=60\nGresTypes=shard\n"
    "PartitionName=all Nodes=ALL Default=YES MaxTime=UNLIMITED\n",
    "prologScriptRefs": [{"name": "scripts"}],
    "config_maps": {"scripts": {"10-check.sh": "#!/bin/sh\n"}},
}
SETS = (
    node_set(partition={"enabled": True, "config": "MaxTime=60 State=UP"}),
    node_set(
        "gpu",
        extraConf="Gres=gpu:a100:4",
        slurmd={"resources": {"limits": {"nvidia.com/gpu": 4}}},
    ),
)


@pytest.fixture(scope="module")
def asset() -> Asset:
    return assets.resolve(AssetName.SLURM, report=lambda _: None)


@pytest.fixture
def folder(asset: Asset) -> Iterator[Path]:
    """Where slurmctld's user can read and write."""
    user = identity.servers()
    made = Path(tempfile.mkdtemp(prefix="slurmctld-"))
    os.chown(made, user.uid, user.gid)
    nss.prepare(made)
    for name in ("slurm.key", "jwt.key"):
        write_private(made / name, os.urandom(1024 if name == "slurm.key" else 32), user)
    make_folder(made / "state", user)
    yield made
    shutil.rmtree(made)


def placed(text: str, folder: Path, asset: Asset) -> str:
    """Make a file fit this machine: other places, another user, a port of its own, programs that are not installed."""
    here: Mapping[str, str] = {
        "SlurmctldHost": f"{socket.gethostname()}(127.0.0.1)",
        "SlurmctldPort": str(ports.choose(["ctld"], dice=Random())["ctld"]),  # noqa: S311  # no secret
        "SlurmctldAddr": "127.0.0.1",
        "SlurmUser": identity.servers().name,
        "AuthInfo": "use_client_ids,disable_sack",  # its socket would be in /run
        "StateSaveLocation": str(folder / "state"),
        "SlurmctldLogFile": str(folder / "log"),
        "SlurmSchedLogFile": str(folder / "log"),
    }
    lines = []
    for line in text.replace("/etc/slurm", str(folder)).splitlines():
        key = line.partition("=")[0]
        lines.append(f"{key}={here[key]}" if key in here else line)
    lines += [f"SlurmctldPidFile={folder / 'pid'}", "MailProg=/bin/true", slurm.unpacked(asset)]
    return "\n".join(lines)


@pytest.mark.parametrize("mistyped", [False, True])
def test_slurmctld_starts_with_what_we_make(asset: Asset, folder: Path, *, mistyped: bool) -> None:
    made = dict(files(inputs(*SETS, **FULL)))  # type: ignore[arg-type]
    if mistyped:
        extra = f"{FULL['extraConf']}SchedulerTyp=sched/backfill\n"
        with pytest.raises(Refusal, match=r"line 7: slurm\.conf has no parameter SchedulerTyp"):
            render(inputs(*SETS, **{**FULL, "extraConf": extra}))  # type: ignore[arg-type]
        made["slurm.conf"] += "SchedulerTyp=sched/backfill\n"
    for name, text in made.items():
        (folder / name).write_text(placed(text, folder, asset) if name == "slurm.conf" else text)
    user = identity.servers()
    log = folder / "log"
    with (
        (folder / "out").open("wb") as out,
        subprocess.Popen(
            [asset.bin / "slurmctld", "-D", "-f", folder / "slurm.conf"],
            env={
                "SLURM_CONF": str(folder / "slurm.conf"),
                "SLURM_SACK_KEY": str(folder / "slurm.key"),
                **nss.environment(folder, slurm.libraries(asset)),
            },
            cwd=folder,
            user=user.uid,
            group=user.gid,
            extra_groups=(),
            stderr=subprocess.STDOUT,
            stdout=out,
        ) as slurmctld,
    ):
        try:
            wait_until(
                lambda: slurmctld.poll() is not None or "Running as primary" in said(log), 30
            )
        finally:
            slurmctld.terminate()
    everything = said(log) + said(folder / "out")
    if mistyped:
        assert "SchedulerTyp" in everything
        assert "Running as primary" not in everything
    else:
        assert "Running as primary" in everything, everything
        assert "error: " not in everything, everything


def said(log: Path) -> str:
    return log.read_text(errors="replace") if log.exists() else ""
