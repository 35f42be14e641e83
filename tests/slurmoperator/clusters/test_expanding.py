"""Which objects a SlurmCluster stands for."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.clusters.expanding import expand
from slurmoperator.configuration import rendering
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.objects.kinds import KINDS
from slurmoperator.objects.own.slurm_cluster import API_VERSION, KIND, SlurmClusterObject

TYPES = {each.kind: each.object_type for each in KINDS}
SIX_LINES: dict[str, Any] = yaml.safe_load(
    (Path(__file__).parents[3] / "deploy/slurm/cluster.yaml").read_text()
)["spec"]


def cluster(spec: dict[str, Any]) -> SlurmClusterObject:
    metadata = {"name": "slurm", "namespace": "slurm", "uid": "u"}
    made = {"apiVersion": API_VERSION, "kind": KIND, "metadata": metadata, "spec": spec}
    return msgspec.convert(made, type=SlurmClusterObject)


def specs(spec: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """What is made, by kind and name."""
    return {
        f"{each['kind']} {each['metadata']['name']}": each.get("spec") or each["data"]
        for each in expand(cluster(spec))
    }


def test_six_lines_are_a_whole_cluster() -> None:
    made = specs(SIX_LINES)

    assert [
        "Secret slurm-sssd-conf",
        "Controller slurm",
        "RestApi slurm",
        "NodeSet slurm-worker-cpu",
        "LoginSet slurm-login",
    ] == list(made)
    assert (
        "PartitionName=all Nodes=cpu Default=YES MaxTime=UNLIMITED\n"
        == (made["Controller slurm"]["extraConf"])
    )
    assert {
        "controllerRef": {"name": "slurm"},
        "replicas": 2,
        "template": {"spec": {"hostname": "cpu-"}},
    } == made["NodeSet slurm-worker-cpu"]


def test_everything_that_can_be_said_has_its_place() -> None:
    made = specs(
        {
            "image": "registry.example.org/{daemon}:{version}",
            "version": "26.05",
            "config": {"MinJobAge": 600, "SchedulerParameters": "bf_interval=5", "Epilog": "a b"},
            "configFiles": {"cgroup.conf": "CgroupPlugin=disabled\n"},
            "nodes": [
                {
                    "name": "gpu",
                    "gres": "gpu:4",
                    "features": ["fast", "new"],
                    "partitions": ["long"],
                    "resources": {"limits": {"cpu": 4}},
                    "template": {
                        "metadata": {"labels": {"a": "b"}},
                        "spec": {"tolerations": [{"operator": "Exists"}]},
                    },
                },
                {"name": "cpu"},
            ],
            "partitions": [
                {"name": "short", "maxTime": "1:00:00", "config": {"MaxNodes": 4}},
                {"name": "long", "default": True},
            ],
            "accounting": {"external": {"host": "db.example.org", "port": 6819}},
            "restApi": {"replicas": 2},
            "tokens": [{"name": "alice", "lifetime": "1h"}, {"name": "b", "username": "bob@x"}],
            "state": {"size": "8Gi", "storageClassName": "fast"},
        }
    )
    controller = made["Controller slurm"]

    assert [
        'Epilog="a b"',
        "MinJobAge=600",
        "SchedulerParameters=bf_interval=5",
        "PartitionName=short Nodes=cpu Default=NO MaxTime=1:00:00 MaxNodes=4",
        "PartitionName=long Nodes=cpu,gpu Default=YES MaxTime=UNLIMITED",
    ] == controller["extraConf"].splitlines()
    assert {"image": "registry.example.org/slurmctld:26.05"} == controller["slurmctld"]
    assert [{"name": "slurm-config-extra"}] == controller["configFileRefs"]
    assert ("8Gi", "fast") == (
        controller["persistence"]["resources"]["requests"]["storage"],
        controller["persistence"]["storageClassName"],
    )
    assert {"host": "db.example.org", "port": 6819} == made["Accounting slurm"]["externalConfig"]
    gpu = made["NodeSet slurm-worker-gpu"]
    assert "Gres=gpu:4 Features=fast,new" == gpu["extraConf"]
    assert {"limits": {"cpu": 4}} == gpu["slurmd"]["resources"]
    assert {"a": "b"} == gpu["template"]["metadata"]["labels"]
    assert {"hostname", "tolerations"} == {*gpu["template"]["spec"]}
    assert ["alice", "bob@x"] == [
        made[f"Token slurm-{each}"]["username"] for each in ("alice", "b")
    ]


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        ({}, {}),
        ({"tls": False}, {"slurm-bridge.dev/tls": "off"}),
        ({"tlsSecret": "mine"}, {"slurm-bridge.dev/tls-secret": "mine"}),
    ],
)
def test_how_slurmrestd_speaks_is_said_by_annotations(
    said: dict[str, Any], marks: dict[str, str]
) -> None:
    bodies = expand(cluster({**SIX_LINES, "restApi": said}))
    (made,) = [body for body in bodies if body["kind"] == "RestApi"]
    assert marks == made["metadata"].get("annotations", {})


def test_the_profile_of_its_workers_is_said_by_annotations() -> None:
    bodies = expand(cluster({**SIX_LINES, "workerProfile": "plain"}))
    (made,) = [body for body in bodies if body["kind"] == "NodeSet"]
    assert {"slurm-bridge.dev/worker-profile": "plain"} == made["metadata"]["annotations"]
    (made,) = [each for each in expand(cluster(SIX_LINES)) if each["kind"] == "NodeSet"]
    assert "annotations" not in made["metadata"]


def test_a_suspended_cluster_has_no_workers_and_keeps_its_queue() -> None:
    made = specs({**SIX_LINES, "suspend": True})

    assert [0, 0] == [
        made[each]["replicas"] for each in ("NodeSet slurm-worker-cpu", "LoginSet slurm-login")
    ]
    assert specs(SIX_LINES)["Controller slurm"] == made["Controller slurm"]


NAMES = st.sampled_from(["cpu", "gpu", "big-mem", "a1"])
NODES = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "replicas": st.integers(0, 9)},
        optional={
            "partitions": st.lists(st.sampled_from(["short", "long"]), unique=True),
            "gres": st.sampled_from(["fpga:2", "nic:a:4"]),
            "features": st.lists(st.sampled_from(["fast", "new"]), unique=True),
        },
    ),
    unique_by=lambda each: each["name"],
)
CLUSTERS = st.fixed_dictionaries(
    {"nodes": NODES, "partitions": st.just([{"name": "short"}, {"name": "long"}])},
    optional={
        "login": st.just({}),
        "suspend": st.booleans(),
        "config": st.dictionaries(st.sampled_from(["MinJobAge", "KillWait"]), st.integers(1, 999)),
        "restApi": st.fixed_dictionaries({"enabled": st.booleans()}),
        "tokens": st.just([{"name": "alice"}]),
    },
)


@given(CLUSTERS)
def test_whatever_is_said_is_a_configuration_without_faults_of_objects_that_their_types_read(
    spec: dict[str, Any],
) -> None:
    bodies = expand(cluster(spec))
    assert bodies == expand(cluster(spec))
    names = [(body["kind"], body["metadata"]["name"]) for body in bodies]
    assert len(names) == len({*names})
    read = [msgspec.convert(body, TYPES[body["kind"]]) for body in bodies if body["kind"] in TYPES]
    by_kind: dict[str, list[Any]] = {}
    for each in read:
        by_kind.setdefault(type(each).__name__, []).append(each)
    (controller,) = by_kind["ControllerObject"]
    node_sets = tuple(by_kind.get("NodeSetObject", ()))

    rendering.render(
        ConfigurationInputs(
            controller=controller, accounting=None, node_sets=node_sets, config_maps={}
        )
    )


@pytest.mark.parametrize("listed", [[], [{"name": "a"}, {"name": "b"}]])
def test_one_partition_is_the_default(listed: list[dict[str, Any]]) -> None:
    conf = specs({"nodes": [{"name": "cpu"}], "partitions": listed})["Controller slurm"][
        "extraConf"
    ]

    assert 1 == conf.count("Default=YES")
