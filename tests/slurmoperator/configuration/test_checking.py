"""A typing error is found, with its place and what to do, before a daemon reads it."""

from typing import Any

import pytest

from slurmoperator.configuration import slurmdbd_conf
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.rendering import render
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.configuration.given import accounting, files, inputs, node_set


def said(given: ConfigurationInputs) -> str:
    try:
        render(given)
    except Refusal as refusal:
        return refusal.text
    return ""


@pytest.mark.parametrize(
    ("extra", "fault"),
    [
        ("MinJobAge=60\nSchedulerParamters=a", "spec.extraConf line 2: slurm.conf has no"),
        ("SchedulerParamters=a", "did you mean SchedulerParameters?"),
        ("MinJobAge=soon", "line 1: expected a number for MinJobAge, found 'soon'"),
        ("UsePAM=maybe", "expected yes or no for UsePAM"),
        ("MinJobAge 60", "expected Key=Value, found 'MinJobAge 60'"),
        ('MailProg="/bin/true', "expected Key=Value"),
        ("MinJobAge=60\nminjobage=70", "line 2: minjobage is already set in line 1"),
        ("PartitionName=all Nodes=ALL MaxTme=1", "has no MaxTme: did you mean"),
        (
            "PartitionName=all Nodes=gpus",
            "Nodes=gpus: there is no such NodeSet; known NodeSets: cpu",
        ),
        ("PartitionName=", "expected a value for PartitionName"),
        ("MinJobAge=60 PartitionName=all", "PartitionName must begin a line of its own"),
        ("Include other.conf", "Include other.conf: put its lines here"),
        ("AuthType=auth/munge", "AuthType cannot be set here: the pods have only its key"),
        ("SlurmctldPort=7000", "SlurmctldPort cannot be set here"),
        ("SlurmctldHost=elsewhere", "SlurmctldHost cannot be set here: it names the pods"),
        ("SlurmdUser=nobody", "SlurmdUser: expected root"),
        (
            "PartitionName=a Nodes=ALL\nPartitionName=a Nodes=cpu",
            "line 2: PartitionName=a is already defined in",
        ),
        ("NodeSet=cpu Feature=x", "NodeSet=cpu is already defined in NodeSet cpu"),
        ("MaxNodeCount=1", "MaxNodeCount=1: expected room for the 2 workers"),
        ("AuthAltParameters=jwt_key=/tmp/x", "contradicts jwt_key=/etc/slurm/jwt.key"),
        ("A" * 9000, "expected at most 8192 characters"),
        ("MinJobAge=\\\n60 Bad\n", "line 1: expected Key=Value, found 'Bad'"),
    ],
)
def test_each_fault_of_extra_conf_is_told_with_its_line(extra: str, fault: str) -> None:
    assert fault in said(inputs(node_set(), extraConf=extra))


@pytest.mark.parametrize(
    "extra",
    [
        "",
        "# a comment\n\nMinJobAge=60 # another\n",
        "SchedulerParameters=bf_interval=5,\\\nbf_window=60",
        'MailProg="/bin/mail -s slurm"',
        "PartitionName=all Nodes=ALL Default=YES\nPartitionName=some Nodes=cpu MaxTime=1-0",
        "NodeName=old[1-3] CPUs=4 State=UNKNOWN\nPartitionName=p Nodes=old[1-2],cpu",
        "prolog=a.sh\nProlog=b.sh",
        "SchedulerParameters+=a",
        "SlurmdPidFile=/run/slurmd.pid",
        "PartitionName=DEFAULT MaxTime=1\nPartitionName=a Nodes=ALL\nPartitionName=DEFAULT MaxTime=2",
        "MaxNodeCount=3000",
    ],
)
def test_what_slurm_takes_is_taken(extra: str) -> None:
    assert "" == said(inputs(node_set(), extraConf=extra))


def test_all_faults_come_at_once() -> None:
    found = said(inputs(node_set(), extraConf="MinJobAge=a\nNope=1\nUsePAM=2"))

    assert 3 == found.count("spec.extraConf line")


@pytest.mark.parametrize(
    ("spec", "maps", "fault"),
    [
        ({"configFileRefs": [{"name": "a"}]}, {}, "spec.configFileRefs[0].name: there is no"),
        ({"configFileRefs": [{"name": "a"}]}, {"a": {"slurm.conf": ""}}, "use extraConf"),
        (
            {"configFileRefs": [{"name": "a"}]},
            {"a": {"slurm.jwks": ""}},
            "which slurm-operator generates",
        ),
        (
            {"configFileRefs": [{"name": "a"}], "prologScriptRefs": [{"name": "b"}]},
            {"a": {"x": ""}, "b": {"x": ""}},
            "spec.prologScriptRefs[0].name: ConfigMaps a and b both have x",
        ),
        (
            {"configFileRefs": [{"name": "a"}]},
            {"a": {"cgroup.conf": "ConstrainCore=yes"}},
            "ConfigMap a cgroup.conf line 1: cgroup.conf has no parameter ConstrainCore: did you",
        ),
        (
            {"configFileRefs": [{"name": "a"}]},
            {"a": {"gres.conf": "Name=gpu Fil=/dev/x"}},
            "a Name line has no Fil",
        ),
        ({"configFileRefs": [{"name": "a"}]}, {"a": {"x": "y" * 1_000_001}}, "at most 1000000"),
        ({"accountingRef": {"name": "db"}}, {}, "spec.accountingRef.name: there is no Accounting"),
    ],
)
def test_what_is_referred_to_is_there_and_good(
    spec: dict[str, Any], maps: dict[str, dict[str, str]], fault: str
) -> None:
    assert fault in said(inputs(config_maps=maps, **spec))


@pytest.mark.parametrize(
    ("spec", "fault"),
    [
        ({"partition": {"enabled": True, "config": "MaxTme=1"}}, "has no MaxTme"),
        (
            {"partition": {"enabled": True, "config": "Nodes=ALL"}},
            "Nodes is always the NodeSet itself",
        ),
        ({"extraConf": "Gres=gpu:1"}, "nothing says how slurmd finds them"),
    ],
)
def test_faults_of_a_node_set_name_it(spec: dict[str, Any], fault: str) -> None:
    found = said(inputs(node_set(**spec)))

    assert found.startswith("NodeSet cpu spec.")
    assert fault in found


def test_gpus_of_several_makers_need_a_file() -> None:
    def gpus(name: str, resource: str) -> Any:
        limits = {"resources": {"limits": {resource: 1}}}
        return node_set(name, extraConf="Gres=gpu:1", slurmd=limits)

    both = gpus("a", "nvidia.com/gpu"), gpus("b", "amd.com/gpu")
    assert "several vendors" in said(inputs(*both))
    given = inputs(
        *both, configFileRefs=[{"name": "f"}], config_maps={"f": {"gres.conf": "AutoDetect=off"}}
    )
    assert "AutoDetect=off" == files(given)["gres.conf"]


def test_a_partition_stands_once() -> None:
    own = node_set(partition={"enabled": True})

    assert "NodeSet cpu already defines partition cpu" in said(
        inputs(own, extraConf="PartitionName=cpu Nodes=ALL")
    )


@pytest.mark.parametrize(
    ("extra", "password", "fault"),
    [
        ("ArchiveEvents=perhaps", "a", "expected yes or no"),
        ("DbdPort=1", "a", "DbdPort cannot be set here"),
        ("StoragePas=x", "a", "slurmdbd.conf has no parameter StoragePas"),
        ("", 'a"b', "spec.storageConfig.passwordKeyRef"),
    ],
)
def test_faults_of_slurmdbd_conf(extra: str, password: str, fault: str) -> None:
    found = [each.text for each in slurmdbd_conf.faults(accounting(extraConf=extra), password)]

    assert fault in " ".join(found)
    assert len(password) == 1 or password not in " ".join(found)
