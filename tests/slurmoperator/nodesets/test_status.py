"""How a NodeSet's numbers are told: in words that make sense whatever they are."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from slurmoperator.nodesets import names
from slurmoperator.nodesets.plan import planning, status
from slurmoperator.nodesets.plan.admission import in_force
from slurmoperator.nodesets.plan.look import (
    NodeSetFacts,
    Outcome,
    PreparationResult,
    SlurmFacts,
    pod_facts,
)
from slurmoperator.nodesets.plan.workers import Worker
from slurmoperator.objects.nodeset import NodeSetObject, NodeSetSpec
from slurmoperator.objects.parts import ObjectReference
from slurmoperator.workers.actions import WorkerDecision
from slurmoperator.workers.situation import WorkerFacts, WorkerObservation
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.nodes import SlurmNodeFacts
from slurmruntime.values.ids import SlurmNode
from tests.slurmoperator.nodesets.given import BOUND, READY, pod

_SINCE = {"type": "Ready", "status": "True", "lastTransitionTime": "2025-12-31T23:59:00Z"}
SINCE_LONG = {**READY, "conditions": [_SINCE]}


def worker(number: int, *, is_ready: bool, goes: str) -> Worker:
    made = pod_facts(
        "gpu",
        pod(
            {"name": f"gpu-{number}", "labels": {names.DIGEST_LABEL: ""}},
            spec=BOUND,
            status=SINCE_LONG if is_ready else {},
        ),
    )
    facts = WorkerFacts(
        name=made.slurm_node, pod=made.worker, seen=WorkerObservation(is_sure=False), goes=goes
    )
    decision = WorkerDecision(reason=f"gpu-{number} goes" if goes else "")
    return Worker(key=number, pod=made, facts=facts, decision=decision)


def registered(**fields: Any) -> dict[str, SlurmNodeFacts]:
    """The node of the first worker, as Slurm lists it."""
    return {"gpu-0": SlurmNodeFacts(name=SlurmNode("gpu-0"), **fields)}


def ready(*, wanted: int, there: int, are_ready: int) -> tuple[str, str, str]:
    """The condition of a NodeSet: those with the highest numbers go if there are too many."""
    workers = [
        worker(each, is_ready=each < are_ready, goes="scaled in" if each >= wanted else "")
        for each in range(there)
    ]
    return told(wanted, workers)["Ready"]


def told(wanted: int, workers: list[Worker], **known: Any) -> dict[str, tuple[str, str, str]]:
    """All conditions."""
    spec = NodeSetSpec(
        controller_ref=ObjectReference(name="site"),
        replicas=wanted,
        extra_conf=known.get("extra_conf", ""),
    )
    meta = ObjectMetadata(name="gpu", namespace="slurm", uid="n", generation=1)
    facts = NodeSetFacts(
        conf=in_force(NodeSetObject(metadata=meta, spec=spec), None),
        pods=(),
        slurm=SlurmFacts(trouble=known.get("trouble"), nodes=known.get("nodes", {})),
        prepared=PreparationResult(revision="", collisions=0),
        now=datetime(2026, 1, 1, tzinfo=UTC),
    )
    plan = replace(planning.plan(facts), workers=tuple(workers))
    outcome = Outcome(deleted_claims=known.get("deleted_claims", ()))
    found = status.compute(facts, plan, outcome).conditions
    return {each.type: (each.status, each.reason, each.message) for each in found}


@pytest.mark.parametrize(
    ("wanted", "there", "are_ready", "reason", "message"),
    [
        (2, 2, 2, "AllReady", "2 of 2 workers are ready"),
        (2, 2, 1, "NotReady", "1 of 2 workers are ready"),
        (2, 1, 1, "NotReady", "1 of 2 workers are ready"),
        (0, 0, 0, "AllReady", "0 of 0 workers are ready"),
        (1, 2, 2, "ScalingIn", "2 workers running, 1 desired; gpu-1 goes"),
        (2, 3, 1, "ScalingIn", "3 workers running, 2 desired; gpu-2 goes"),
        (0, 1, 1, "ScalingIn", "1 worker running, 0 desired; gpu-0 goes"),
    ],
)
def test_it_is_never_said_that_more_are_ready_than_are_wanted(
    wanted: int, there: int, are_ready: int, reason: str, message: str
) -> None:
    truth, found, said = ready(wanted=wanted, there=there, are_ready=are_ready)
    assert (reason, message) == (found, said)
    assert truth == ("True" if reason == "AllReady" else "False")


MISSING = "1 of 1 workers are ready; gpu-0 is ready but not registered in Slurm"


@pytest.mark.parametrize(
    ("states", "trouble", "expected"),
    [
        (None, "", ("False", "NotRegistered", MISSING)),
        (frozenset({"IDLE"}), "", ("True", "AllReady", "1 of 1 workers are ready")),
        (None, "slurmctld is away", ("True", "AllReady", "1 of 1 workers are ready")),
        (None, None, ("True", "AllReady", "1 of 1 workers are ready")),
    ],
)
def test_a_worker_that_slurm_surely_lacks_is_not_ready(
    states: frozenset[str] | None, trouble: str | None, expected: tuple[str, str, str]
) -> None:
    workers = [worker(0, is_ready=True, goes="")]

    nodes = {} if states is None else registered(states=states)
    found = told(1, workers, nodes=nodes, trouble=trouble)

    assert expected == found["Ready"]
    assert (found["SlurmKnown"][0] == "False") is (found["Ready"][0] == "False")


def test_a_claim_that_is_deleted_under_a_worker_is_told_unless_something_else_is_worse() -> None:
    deleted = {"deleted_claims": ("claim data-gpu-0 is being deleted",)}
    known = {"nodes": registered(states=frozenset({"IDLE"})), "trouble": ""}

    found = told(1, [worker(0, is_ready=True, goes="")], **known, **deleted)["Ready"]
    late = told(2, [worker(0, is_ready=True, goes="")], **known, **deleted)["Ready"]

    said = "workers are ready; claim data-gpu-0 is being deleted"
    assert found == ("False", "VolumeDeleted", f"1 of 1 {said}")
    assert late == ("False", "NotReady", f"1 of 2 {said}")


HINT = "slurmd finds devices through gres.conf or AutoDetect; its log lists them"


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        (
            "",
            (
                "False",
                "DevicesMissing",
                f"1 of 1 workers are ready; gpu-0 registered 0 of 1 gpu; {HINT}",
            ),
        ),
        ("gpu:1", ("True", "AllReady", "1 of 1 workers are ready")),
    ],
)
def test_a_worker_without_the_devices_that_its_nodeset_promises_is_not_ready(
    devices: str, expected: tuple[str, str, str]
) -> None:
    found = told(
        1,
        [worker(0, is_ready=True, goes="")],
        nodes=registered(states=frozenset({"IDLE"}), gres=devices),
        trouble="",
        extra_conf="Gres=gpu:1",
    )

    assert expected == found["Ready"]


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        (
            "",
            (
                "False",
                "InvalidRegistration",
                "1 of 1 workers are ready; Slurm starts no jobs on gpu-0: (0 < 1)",
            ),
        ),
        ("slurmctld is away", ("True", "AllReady", "1 of 1 workers are ready")),
    ],
)
def test_a_worker_that_has_registered_with_less_than_it_says_is_not_ready(
    trouble: str, expected: tuple[str, str, str]
) -> None:
    """Slurm keeps what the worker says of itself as the node's devices."""
    found = told(
        1,
        [worker(0, is_ready=True, goes="")],
        nodes=registered(
            states=frozenset({"IDLE", "DRAIN", "INVALID_REG"}), gres="gpu:1", reason="(0 < 1)"
        ),
        trouble=trouble,
        extra_conf="Gres=gpu:1",
    )

    assert expected == found["Ready"]
