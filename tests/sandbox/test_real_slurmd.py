"""What a slurmd in a node's box reads, and what slurmctld knows of it."""

import os
import socket
from ipaddress import IPv4Network
from pathlib import Path

import pytest

from sandbox import identity, slurm_conf
from sandbox.errors import SandboxError
from sandbox.instance import PORTS, Instance
from sandbox.options import Options
from sandbox.realnodes import slurmd
from sandbox.realnodes.network import Network

NETWORK = Network(id="0" * 8, range=IPv4Network("10.140.0.0/16"))


def instance(**options: object) -> Instance:
    made = Options(hybrid=True, **options)  # type: ignore[arg-type]
    return Instance(root=Path("/sb"), options=made, ports=dict.fromkeys(PORTS, 6818))


def conf(of: Instance, network: Network | None) -> str:
    return slurm_conf.slurm_conf(of, user=identity.SERVERS, unpacked="", network=network)


def test_every_real_node_has_a_slurmd_at_its_own_address_and_no_simulated_one_is_added() -> None:
    two = instance(real_nodes=2, real_memory_mib=1024)

    text = conf(two, NETWORK)

    for index, name in enumerate(("real-0", "real-1")):
        (line,) = [line for line in text.splitlines() if line.startswith(f"NodeName={name} ")]
        for said in (
            f"NodeHostname={name}",
            f"NodeAddr={NETWORK.address(index)}",
            f"CoresPerSocket={os.cpu_count()}",
            "RealMemory=924",
        ):
            assert said in line.split()
    assert "Nodes=slurm-bridge,real-0,real-1 " in text
    assert "hybrid-0" not in text
    assert f"SlurmdUser={identity.caller().name}\n" in text
    assert slurmd.hosts(two, NETWORK) == tuple(
        f"{NETWORK.address(index)} real-{index}" for index in range(2)
    )


def test_without_real_nodes_one_simulated_node_has_the_slurmd() -> None:
    text = conf(instance(), None)

    assert "Nodes=slurm-bridge,hybrid-0 " in text
    assert slurmd.hosts(instance(), None) == ()


def test_a_box_reaches_slurmctld_at_the_bridges_address_and_shares_its_key() -> None:
    theirs = conf(instance(real_nodes=1), NETWORK)

    text = slurmd.configuration(theirs, NETWORK)

    assert f"SlurmctldHost={socket.gethostname()}({NETWORK.gateway})" in text
    assert "disable_sack" in theirs
    assert "disable_sack" not in text
    assert "NO_CONF_HASH" in text


@pytest.mark.parametrize(
    ("devices", "gres", "conf_text"),
    [
        ({}, "", ""),
        (
            {"real_dra": 3},
            "gpu:example:3",
            "Name=gpu Type=example File=/dev/gpu[0-2]\n",
        ),
        ({"real_gpus": 2}, "gpu:2", "Name=gpu File=/dev/gpu[0-1]\n"),
    ],
)
def test_slurmd_has_the_devices_of_the_kubelet_beside_it(
    devices: dict[str, int], gres: str, conf_text: str
) -> None:
    of = instance(real_nodes=1, **devices)

    assert (f" Gres={gres} " in conf(of, NETWORK)) is bool(gres)
    assert conf_text == slurmd.gres_conf(slurm_conf.real_gres(of.options))


def test_devices_of_both_kinds_are_refused() -> None:
    with pytest.raises(SandboxError, match="either --real-gpus or --real-dra"):
        conf(instance(real_nodes=1, real_dra=1, real_gpus=1), NETWORK)
