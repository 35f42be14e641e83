"""Slurm's files, compared line by line with those that SchedMD's slurm-operator writes for the same objects."""

from dataclasses import replace

import msgspec
import pytest

from slurmoperator.configuration import slurmdbd_conf
from slurmoperator.configuration.rendering import ConfigurationSet, render
from slurmoperator.objects.nodeset import NodeSetStatus
from tests.slurmoperator.configuration.given import accounting, files, inputs, node_set

PLAIN = """
ClusterName=site
SlurmUser=slurm
SlurmctldHost=site-controller-0(site-controller-0.site-controller-internal.slurm)
SlurmctldPort=6817
SlurmctldAddr=site-controller.slurm
StateSaveLocation=/var/spool/slurmctld/site
SlurmdUser=root
SlurmdPort=6818
SlurmdSpoolDir=/var/spool/slurmd
MaxNodeCount=1024
SlurmctldLogFile=/var/log/slurm/slurmctld.log
SlurmSchedLogFile=/var/log/slurm/slurmctld.log
SlurmdLogFile=/var/log/slurm/slurmd.log
AuthType=auth/slurm
CredType=cred/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
SlurmctldParameters=enable_configless,reconfig_on_restart
MetricsType=metrics/openmetrics
AccountingStorageType=accounting_storage/none
NodeSet=cpu Feature=cpu
"""
"""What theirs has for one plain NodeSet, without banners."""
OURS = PLAIN.replace("SlurmctldLogFile=", "ReturnToService=2\nSlurmctldLogFile=")

DATABASE = """
DbdHost=site-accounting-0
DbdPort=6819
SlurmUser=slurm
AuthType=auth/slurm
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key=/etc/slurm/jwt.key
AuthInfo=use_client_ids
StorageType=accounting_storage/mysql
StorageHost=mariadb
StoragePort=3306
StorageUser=slurm
StorageLoc=slurm_acct_db
StoragePass=secret
LogFile=/dev/null
"""


def lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line]


def differs(ours: str, theirs: str) -> tuple[set[str], set[str]]:
    """Lines of ours only, and of theirs only."""
    return set(lines(ours)) - set(lines(theirs)), set(lines(theirs)) - set(lines(ours))


def test_a_plain_cluster_has_the_same_lines_in_the_same_order_but_one() -> None:
    made = files(inputs(node_set()))

    assert lines(OURS) == lines(made["slurm.conf"])
    assert ["CgroupPlugin=cgroup/v2", "IgnoreSystemd=yes"] == lines(made["cgroup.conf"])
    assert {"slurm.conf", "cgroup.conf"} == set(made)


def test_a_plain_slurmdbd_has_the_same_lines() -> None:
    made = slurmdbd_conf.text(accounting(extraConf=...), "secret")

    assert (set(), set()) == differs(made, DATABASE)


def test_what_extra_conf_repeats_stands_once() -> None:
    made = files(inputs(node_set(), extraConf="MaxNodeCount=5000 SlurmdUser=root\nMinJobAge=60"))

    ours, theirs = differs(made["slurm.conf"], OURS)
    assert ({"MaxNodeCount=5000", "MinJobAge=60"}, {"MaxNodeCount=1024"}) == (ours, theirs)


def test_lists_are_joined_and_keep_their_case() -> None:
    extra = "SlurmctldParameters=enable_configless,idle_on_node_suspend,cloud_Dns\nAuthInfo=cred_expire=60"
    ours, _ = differs(files(inputs(node_set(), extraConf=extra))["slurm.conf"], OURS)

    assert ours == {
        "SlurmctldParameters=enable_configless,reconfig_on_restart,idle_on_node_suspend,cloud_Dns",
        "AuthInfo=use_client_ids,cred_expire=60",
    }


def test_there_is_room_for_twice_as_many_workers() -> None:
    made = files(inputs(node_set(replicas=1500)))

    assert ({"MaxNodeCount=4096"}, {"MaxNodeCount=1024"}) == differs(made["slurm.conf"], OURS)


def test_there_is_room_for_a_worker_on_each_of_many_machines() -> None:
    on_nodes = node_set(scalingMode="DaemonSet", replicas=1)
    told = NodeSetStatus(desired=1500, replicas=1400)
    made = files(inputs(msgspec.structs.replace(on_nodes, status=told)))

    assert "MaxNodeCount=4096" in made["slurm.conf"]


def test_clients_fail_over_by_themselves() -> None:
    shared = {"enabled": True, "existingClaim": "state"}
    made = files(inputs(node_set(), ha={"enabled": True, "backups": 1}, persistence=shared))

    second = "SlurmctldHost=site-controller-1(site-controller-1.site-controller-internal.slurm)"
    ours, theirs = differs(made["slurm.conf"], OURS)
    assert ({second}, {"SlurmctldAddr=site-controller.slurm"}) == (ours, theirs)


@pytest.mark.parametrize(
    ("spec", "host", "port"),
    [
        ({}, "site-accounting", 6819),
        (
            {"external": True, "externalConfig": {"host": "dbd.example.org", "port": 7000}},
            "dbd.example.org",
            7000,
        ),
    ],
)
def test_slurmctld_finds_its_slurmdbd(spec: dict[str, object], host: str, port: int) -> None:
    made = files(inputs(node_set(), database=accounting(**spec)))

    ours, theirs = differs(made["slurm.conf"], OURS)
    assert theirs == {"AccountingStorageType=accounting_storage/none"}
    assert ours == {
        "AccountingStorageType=accounting_storage/slurmdbd",
        f"AccountingStorageHost={host}",
        f"AccountingStoragePort={port}",
    }


def test_devices_have_their_kinds_and_are_found() -> None:
    gpus = node_set(
        "gpu",
        extraConf="Gres=gpu:a100:4,shard:8",
        slurmd={"resources": {"limits": {"nvidia.com/gpu": 4}}},
        partition={"enabled": True, "config": "MaxTime=60"},
    )
    made = files(inputs(node_set(), gpus))

    ours, _ = differs(made["slurm.conf"], OURS)
    assert ours == {
        "#NodeName=gpu_any State=FUTURE Features=gpu Gres=gpu:a100:4,shard:8",
        "GresTypes=gpu,shard",
        "NodeSet=gpu Feature=gpu",
        "PartitionName=gpu Nodes=gpu MaxTime=60",
    }
    assert made["gres.conf"] == "AutoDetect=nvidia\n"


def test_scripts_are_named_so_that_configless_ships_them() -> None:
    made = files(
        inputs(
            node_set(),
            prologScriptRefs=[{"name": "b"}, {"name": "a"}],
            epilogSlurmctldScriptRefs=[{"name": "c"}],
            config_maps={"a": {"20.sh": "#!"}, "b": {"90.sh": "#!"}, "c": {"end.sh": "#!"}},
        )
    )

    ours, _ = differs(made["slurm.conf"], OURS)
    assert ours == {"Prolog=20.sh", "Prolog=90.sh", "EpilogSlurmctld=/etc/slurm/end.sh"}
    assert "#!" == made["20.sh"]


def test_an_external_slurmctld_is_named_to_slurmrestd() -> None:
    address = {"host": "ctl.example.org", "port": 6900}
    made = files(inputs(external=True, externalConfig=address))

    assert lines(made["slurm.conf"]) == [
        "ClusterName=site",
        "SlurmUser=slurm",
        "SlurmctldHost=ctl.example.org",
        "SlurmctldPort=6900",
        "AuthType=auth/slurm",
        "CredType=cred/slurm",
        "AuthAltTypes=auth/jwt",
        "AccountingStorageType=accounting_storage/none",
    ]


@pytest.mark.parametrize(
    ("password", "written"),
    [("a#b", r"a\#b"), ("a\\b", r"a\\b"), ("a b", '"a b"'), ("plain", "plain")],
)
def test_a_password_arrives_whole(password: str, written: str) -> None:
    made = slurmdbd_conf.text(accounting(extraConf=...), password)

    assert f"StoragePass={written}" in lines(made)


def test_a_set_is_known_by_its_contents() -> None:
    def digest(**spec: object) -> str:
        found = render(inputs(node_set(), **spec))  # type: ignore[arg-type]
        assert isinstance(found, ConfigurationSet)
        return found.digest

    assert digest() == digest()
    assert digest() != digest(extraConf="MinJobAge=60")
    first = render(inputs(node_set("b"), node_set("a")))
    second = render(inputs(node_set("a"), node_set("b")))
    assert isinstance(first, ConfigurationSet)
    assert isinstance(second, ConfigurationSet)
    assert first.digest == second.digest
    moved = replace(first, files={"ab": "c"}), replace(first, files={"a": "bc"})
    assert moved[0].digest != moved[1].digest
