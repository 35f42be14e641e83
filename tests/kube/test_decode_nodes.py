"""What is read out of a node's JSON."""

import json

from slurmruntime.kube import node_objects
from slurmruntime.model.nodes import Allocatable, KubeNodeFacts, NodeCondition, Taint
from slurmruntime.values.ids import KubeNode

NEW = "2026-01-01T12:00:00Z"


def test_a_node_is_read_with_what_it_has_left_for_pods() -> None:
    manifest = {
        "metadata": {
            "name": "n",
            "uid": "u",
            "resourceVersion": "7",
            "creationTimestamp": NEW,
            "labels": {"a": "b"},
            "annotations": {"c": "d"},
        },
        "spec": {
            "unschedulable": True,
            "taints": [{"key": "k", "effect": "NoSchedule", "timeAdded": NEW}],
        },
        "status": {
            "allocatable": {
                "cpu": "7910m",
                "memory": "32Gi",
                "ephemeral-storage": "1k",
                "pods": "110",
                "nvidia.com/gpu": "4",
            },
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ],
            "addresses": [
                {"type": "Hostname", "address": "n"},
                {"type": "InternalIP", "address": "10.0.0.1"},
                {"type": "InternalIP", "address": "fd00::1"},
            ],
        },
    }

    assert node_objects.node(json.dumps(manifest).encode()) == KubeNodeFacts(
        name=KubeNode("n"),
        uid="u",
        resource_version="7",
        labels={"a": "b"},
        annotations={"c": "d"},
        taints=(Taint(key="k", effect="NoSchedule"),),
        is_unschedulable=True,
        is_ready=True,
        conditions=(
            NodeCondition(type="MemoryPressure", status="False"),
            NodeCondition(type="Ready", status="True"),
        ),
        allocatable=Allocatable(
            milli_cpu=7910,
            memory_bytes=32 * 2**30,
            ephemeral_storage_bytes=1000,
            pods=110,
            extended={"nvidia.com/gpu": 4},
        ),
        internal_ip="10.0.0.1",
    )


def test_a_node_that_nobody_reports_of_is_not_ready() -> None:
    manifest = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": NEW}
    }

    assert not node_objects.node(json.dumps(manifest).encode()).is_ready
