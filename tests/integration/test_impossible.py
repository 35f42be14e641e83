"""Pods that ask for what no node has: they wait and say why, and no job of theirs fails in Slurm."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from sandbox.client import Sandbox
from slurmcli import plugin
from tests.integration import gang_pods
from tests.integration.worlds import (
    PATIENCE_S,
    Worlds,
    condition,
    container,
    is_gated,
)
from tests.servers import wait_until

_ASK = "slurmjob.slinky.slurm.net"
_CONSTRAINTS = f"{_ASK}/constraints"
_GPUS = {f"{_ASK}/gres": "gpu:99"}
_WORDS = "nodes that suit the pod has 99 gpu in Slurm (the largest has 4)"
_FEATURES = ("apart-0", "apart-1")


@pytest.fixture
def apart(worlds: Worlds, full_sandbox: Sandbox) -> Iterator[str]:
    """An expression of two features that Slurm knows, and that no node has together."""
    nodes = full_sandbox.instance.options.node_names[:2]
    before = {
        node: worlds.scontrol("show", "node", node).partition("AvailableFeatures=")[2].split()[0]
        for node in nodes
    }
    for node, feature in zip(nodes, _FEATURES, strict=True):
        worlds.scontrol("update", f"nodename={node}", f"availablefeatures={before[node]},{feature}")
    yield "&".join(_FEATURES)
    for node, features in before.items():
        worlds.scontrol("update", f"nodename={node}", f"availablefeatures={features}")


def test_what_no_node_has_is_said_before_anything_is_submitted(
    worlds: Worlds, tmp_path: Path
) -> None:
    uid = worlds.submit("greedy", annotations=_GPUS)
    for name in ("train-0", "train-1"):
        gang_pods.submit(worlds, name, group="train", size=2, notes=_GPUS)

    for name in ("greedy", "train-0", "train-1"):
        told = worlds.await_pod(name, lambda pod: condition(pod).get("reason") == "SubmitRefused")
        assert condition(told)["message"].endswith(_WORDS)
        assert is_gated(told)
    assert [] == [*worlds.jobs(uid), *worlds.jobs(gang_pods.uid_of(worlds, "train"))]
    assert _WORDS in _explained(worlds, tmp_path, _GPUS)


def test_a_pod_that_slurm_finds_impossible_waits_until_nodes_change(
    worlds: Worlds, apart: str
) -> None:
    uid = worlds.submit("never", annotations={_CONSTRAINTS: apart})

    told = worlds.await_pod("never", lambda pod: condition(pod).get("reason") == "NeverRunnable")
    (job,) = worlds.jobs(uid)
    assert ("FAILED", "BadConstraints") == (job.state, job.reason)
    says = condition(told)["message"]
    assert says.startswith(f"Slurm job {job.id} could never run, and Slurm ended it: no node can")
    assert (is_gated(told), "Pending") == (True, told["status"]["phase"])
    assert says == worlds.await_event("never", "NeverRunnable")

    node = worlds.sandbox.instance.options.node_names[0]
    labels = {"metadata": {"labels": {"tried": "again"}}}
    worlds.sandbox.admin.patch(f"/api/v1/nodes/{node}", labels)
    wait_until(lambda: _is_tried_again(worlds, uid), PATIENCE_S, sandbox=worlds.sandbox)


@pytest.fixture
def roots_alone(worlds: Worlds) -> Iterator[str]:
    """A partition that takes jobs of root's alone."""
    name = "roots-alone"
    worlds.scontrol("create", f"PartitionName={name}", "RootOnly=YES", "Nodes=ALL")
    yield name
    worlds.scontrol("delete", f"PartitionName={name}")


def test_a_pod_in_a_partition_of_roots_alone_waits_and_says_so(
    worlds: Worlds, roots_alone: str
) -> None:
    """Slurm takes the job, as root's token submits it, and ends it before it begins."""
    worlds.submit("barred", annotations={f"{_ASK}/partition": roots_alone})

    told = worlds.await_pod("barred", lambda pod: condition(pod).get("reason") == "NeverRunnable")

    assert "RootOnly" in condition(told)["message"]
    assert (is_gated(told), "Pending") == (True, told["status"]["phase"])


def _is_tried_again(worlds: Worlds, uid: str) -> bool:
    """Meanwhile the controllers may have taken the features away: then Slurm refuses to take it."""
    told = worlds.pod("never") or {"status": {}}
    return len(worlds.jobs(uid)) > 1 or condition(told).get("reason") == "SubmitRefused"


def _explained(worlds: Worlds, folder: Path, notes: dict[str, str]) -> str:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "greedy", "annotations": notes},
        "spec": {"containers": [container()]},
    }
    file = folder / "pod.yaml"
    file.write_text(yaml.safe_dump(pod))
    arguments = ["explain", str(file), "-n", worlds.namespace]
    done = CliRunner().invoke(plugin.app(), arguments, env={**worlds.sandbox.env, "COLUMNS": "400"})
    assert 2 == done.exit_code
    return done.stdout
