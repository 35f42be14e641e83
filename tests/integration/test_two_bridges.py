"""Two Kubernetes clusters share one Slurm: each has its own nodes and jobs, and leaves the other's alone.

The second cluster's controllers also show what other settings do with nodes.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.integration.machines import PATIENCE_S, Machine, a_machine
from tests.integration.second_bridge import second_bridge
from tests.integration.worlds import Worlds
from tests.servers import wait_until

_WANTED = {names.EXTERNAL_NODE_LABEL: "true"}
_NO_WEIGHT = (
    "metadata.annotations[slurm-bridge.dev/weight]: "
    "expected a whole number from 0 to 4294967294, found '1 State=DOWN'"
)
_SETTINGS = {
    "cordon_drained_nodes": True,
    "drain_conditions": ["KernelDeadlock"],
    "node_features": ["disk", "zone"],
    "taint_effect": "NoExecute",
}


@pytest.fixture(scope="module", autouse=True)
def _second(
    control_plane: Sandbox, full_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The second cluster's controllers; control_plane's nodes node-0 … want the names that the first one's have."""
    folder = tmp_path_factory.mktemp("second")
    with second_bridge(control_plane, full_sandbox, folder, _SETTINGS):
        yield


@contextmanager
def theirs(
    control_plane: Sandbox, full_sandbox: Sandbox, **more: dict[str, str]
) -> Iterator[Machine]:
    """A node of the second cluster that is to be in Slurm."""
    labels = {**_WANTED, **more.pop("labels", {})}
    annotations = more.get("annotations")
    with a_machine(
        control_plane, slurm=full_sandbox, labels=labels, annotations=annotations
    ) as machine:
        yield machine
    machine.await_not_in_slurm()


@pytest.fixture
def registered(control_plane: Sandbox, full_sandbox: Sandbox) -> Iterator[Machine]:
    with theirs(control_plane, full_sandbox) as machine:
        machine.await_in_service()
        yield machine


def test_a_name_the_other_cluster_has_is_left_to_it(
    registered: Machine, control_plane: Sandbox, full_sandbox: Sandbox
) -> None:
    """Drained there, cordoned here: neither passes to the other cluster's node of that name."""
    ours = Machine(control_plane, "node-0", full_sandbox)
    before = ours.in_slurm()

    status, message = ours.await_condition("NameTaken")
    assert ("False", "Slurm node node-0 does not belong to this cluster: left alone") == (
        status,
        message,
    )
    assert names.MANAGED_NODE_TAINT not in ours.taints()
    ours.cordon(on=True)
    ours.label("false")
    ours.label("true")
    ours.cordon(on=False)
    registered.cordon(on=True)  # what was decided by then is seen by now
    registered.await_drained()

    after = ours.in_slurm()
    assert (before["State"], before["AvailableFeatures"]) == (
        after["State"],
        after["AvailableFeatures"],
    )


def test_jobs_of_the_other_cluster_are_left_alone(worlds: Worlds) -> None:
    """The second cluster knows no such pod; it looks for orphans every two seconds."""
    uid = worlds.submit("stays")
    worlds.await_phase("stays", "Running")
    others = worlds.submit("other")
    worlds.await_phase("other", "Running")
    worlds.delete("other")
    worlds.await_accounted(others)

    assert ["RUNNING"] == [job.state for job in worlds.live(uid)]


@pytest.mark.parametrize("state", ["DRAIN", "DOWN", "FAIL"])
def test_what_is_out_of_service_is_cordoned_with_our_mark_and_back(
    registered: Machine, state: str
) -> None:
    registered.update(state=[state], reason="bad fan")
    wait_until(registered.is_cordoned, PATIENCE_S, sandbox=registered.sandbox)
    note = registered.in_kube()["metadata"]["annotations"][names.CORDON_ANNOTATION]
    assert note.startswith("bad fan, by root, since 20")

    registered.update(state=["RESUME"])
    wait_until(lambda: not registered.is_cordoned(), PATIENCE_S, sandbox=registered.sandbox)
    registered.await_in_service()
    assert names.CORDON_ANNOTATION not in registered.in_kube()["metadata"]["annotations"]


def test_a_persons_cordon_outlives_slurms_drain(registered: Machine) -> None:
    registered.cordon(on=True)
    registered.await_drained()
    registered.update(state=["DRAIN"], reason="bad fan")
    wait_until(
        lambda: registered.condition()[2].startswith("bad fan"),
        PATIENCE_S,
        sandbox=registered.sandbox,
    )
    registered.update(state=["UNDRAIN"])

    registered.await_in_slurm(lambda node: node.get("Reason", "").startswith("slurm-bridge: "))
    assert registered.is_cordoned()


def test_a_listed_condition_drains(registered: Machine) -> None:
    registered.set_condition("KernelDeadlock", "True", "DockerHung")
    assert registered.await_drained().startswith(
        "slurm-bridge: condition KernelDeadlock (DockerHung)"
    )
    assert not registered.is_cordoned()

    registered.set_condition("KernelDeadlock", "False", "NoDeadlock")
    registered.await_in_service()


def test_labels_gpus_and_weight_show_in_slurm(
    control_plane: Sandbox, full_sandbox: Sandbox
) -> None:
    described = {
        "labels": {"disk": "ssd", "zone": "a", "nvidia.com/gpu.product": "NVIDIA-A100-80GB"},
        "annotations": {names.WEIGHT_ANNOTATION: "7", names.THREADS_ANNOTATION: "2"},
    }
    with theirs(control_plane, full_sandbox, **described) as machine:
        machine.await_in_service()
        node = machine.in_slurm()

        assert {"slurm-bridge", "disk=ssd", "zone=a"} < set(node["AvailableFeatures"].split(","))
        assert ("gpu:nvidia-a100-80gb:2", "7") == (node["Gres"], node["Weight"])
        assert ("4", "2", "8") == (node["CoresPerSocket"], node["ThreadsPerCore"], node["CPUTot"])

        machine.label("b", key="zone")
        machine.annotate(names.WEIGHT_ANNOTATION, "9")
        machine.await_in_slurm(
            lambda node: "zone=b" in node["AvailableFeatures"] and node["Weight"] == "9"
        )


def test_the_taint_is_the_one_that_is_set(registered: Machine) -> None:
    (taint,) = registered.in_kube()["spec"]["taints"]
    assert (names.MANAGED_NODE_TAINT, "NoExecute") == (taint["key"], taint["effect"])


@pytest.mark.parametrize(
    ("annotations", "reason", "words"),
    [
        (
            {names.PARTITIONS_ANNOTATION: "slurm-bridge,typo"},
            "PartitionMissing",
            "Slurm has no partition typo that takes nodes with a feature of that name",
        ),
        (
            {names.TOPOLOGY_ANNOTATION: "nowhere:s1"},
            "Refused",
            "Slurm refuses the node: Requested topology configuration is not available",
        ),
        (
            {names.WEIGHT_ANNOTATION: "1 State=DOWN"},
            "InvalidAnnotation",
            _NO_WEIGHT,
        ),
    ],
)
def test_what_slurm_cannot_take_is_said_on_the_node_and_the_rest_goes_on(
    control_plane: Sandbox,
    full_sandbox: Sandbox,
    annotations: dict[str, str],
    reason: str,
    words: str,
) -> None:
    with theirs(control_plane, full_sandbox, annotations=annotations) as machine:
        _, message = machine.await_condition(reason)
        assert words == message
        machine.await_event(reason, words)
        is_in_slurm = reason == "PartitionMissing"
        assert is_in_slurm == bool(machine.in_slurm())
        assert is_in_slurm == (names.MANAGED_NODE_TAINT in machine.taints())

        for key in annotations:
            mended = "slurm-bridge" if key == names.PARTITIONS_ANNOTATION else None
            machine.annotate(key, mended)
        machine.await_in_service()


def test_of_two_nodes_with_one_name_the_first_keeps_it(
    registered: Machine, control_plane: Sandbox, full_sandbox: Sandbox
) -> None:
    claim = {"labels": {names.SLURM_NODE_NAME_LABEL: registered.name, **_WANTED}}
    with a_machine(
        control_plane, slurm=full_sandbox, name=f"a-{registered.name}", **claim
    ) as rival:
        _, message = rival.await_condition("NameTaken")
        assert f"node {registered.name} already has the Slurm name {registered.name}" in message
        assert names.MANAGED_NODE_TAINT not in rival.taints()
        assert "InService" == registered.condition()[1]
