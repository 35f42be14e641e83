"""What objects of the control plane are told, and which configuration may come into force."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from slurmoperator.configuration import changes
from slurmoperator.configuration.changes import ConfigurationPlan
from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.partitions import NOT_READ, PartitionReading, SlurmPartitions
from slurmoperator.configuration.rendering import ConfigurationSet, FilesInForce, render
from slurmoperator.daemons import acting, conditions
from slurmoperator.daemons.part import PARTS
from slurmoperator.daemons.situation import (
    FilesVerdict,
    PartOutcome,
    PartPlan,
    WorkloadState,
)
from slurmoperator.keys import rings
from slurmoperator.keys.rotation import KEY_CONDITION, KeyRing, RotationDecision
from slurmoperator.objects.controller import ControllerStatus
from slurmoperator.objects.parts import KeyOfObject
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.kube import errors
from tests.slurmoperator.configuration.given import files, inputs, node_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = WorkloadState(name="StatefulSet a", desired=1, ready=1, pods=1, is_updated=True)
LATE = WorkloadState(
    name="StatefulSet a", desired=1, ready=0, pods=1, is_updated=True, waits=("pod a-0: no image",)
)
LEAVING = replace(READY, deleted_claims=("claim s is being deleted",))


Look = tuple[PartPlan, PartOutcome]
REFUSED = errors.Rejected("PATCH", "/", status=422, message="no")
INTERRUPTED = errors.Unavailable("GET", "/", message="no answer")
WATCHED = PARTS["Controller"].read(b'{"metadata": {"name": "a", "uid": "uid-a"}}')


def look(digest: str = "", **fields: Any) -> Look:
    """What one look has planned and seen; the fields are those of the plan or of the outcome."""
    if digest:
        empty = ConfigurationSet(files={})
        fields["verdict"] = FilesVerdict(
            desired=empty,
            served=FilesInForce(empty, is_proven=True),
            refused="",
            not_tried="",
            digest=digest,
            awaited=None,
            is_pending=False,
        )
    of_outcome = {"refused_reason", "workloads", "failure"} & fields.keys()
    outcome = {name: fields.pop(name) for name in of_outcome}
    return PartPlan(**fields), PartOutcome(watched=WATCHED, **outcome)


def told(
    facts: Look, before: tuple[ObjectCondition, ...] = (), now: datetime = NOW
) -> dict[str, ObjectCondition]:
    found = conditions.evaluate(before, *facts, generation=3, now=now)
    return {each.type: each for each in found}


@pytest.mark.parametrize(
    ("facts", "condition_type", "expected"),
    [
        (look(), "Accepted", ("True", "Accepted", "")),
        (look(refused="bad"), "Accepted", ("False", "BadInput", "bad")),
        (
            look(refused="x", refused_reason="NotOurs"),
            "Accepted",
            ("False", "NotOurs", "x"),
        ),
        (
            look(configured="", digest="abcdef0123456789"),
            "Configured",
            ("True", "InForce", "digest abcdef012345"),
        ),
        (look(configured="line 3"), "Configured", ("False", "Refused", "line 3")),
        (
            look(configured="line 3", digest="abcdef0123456789"),
            "Configured",
            ("False", "Refused", "line 3; the configuration in force stays (digest abcdef012345)"),
        ),
        (look(), "Ready", ("Unknown", "NotRead", "the state of its pods is unknown")),
        (look(workloads=()), "Ready", ("True", "AllReady", "")),
        (look(workloads=(READY,)), "Ready", ("True", "AllReady", "")),
        (
            look(workloads=(READY, LATE)),
            "Ready",
            ("False", "NotReady", "StatefulSet a: 0 of 1 pods are ready; pod a-0: no image"),
        ),
        (
            look(workloads=(READY, LEAVING)),
            "Ready",
            ("False", "VolumeDeleted", "StatefulSet a: claim s is being deleted"),
        ),
        (
            look(workloads=(LATE, LEAVING)),
            "Ready",
            (
                "False",
                "NotReady",
                "StatefulSet a: 0 of 1 pods are ready; pod a-0: no image; StatefulSet a: claim s is being deleted",
            ),
        ),
        (
            look(workloads=(READY,), failure=REFUSED),
            "Ready",
            ("False", "Failing", str(REFUSED)),
        ),
    ],
)
def test_each_condition_says_what_is_wrong(
    facts: Look, condition_type: str, expected: tuple[str, str, str]
) -> None:
    found = told(facts)[condition_type]

    assert (found.status, found.reason, found.message) == expected
    assert found.observed_generation == 3


def test_what_has_no_configuration_is_told_nothing_of_it() -> None:
    assert told(look()).keys() == {"Accepted", "Ready"}


def test_the_word_on_a_key_holds_until_somebody_has_looked_again() -> None:
    waits = RotationDecision(truth="False", reason="Waiting", message="pod a")
    first = conditions.evaluate((), *look(rotation=waits), generation=1, now=NOW)
    assert ("False", "Waiting", "pod a") == word(first)

    later = conditions.evaluate(first, *look(refused="bad"), generation=1, now=NOW)
    assert ("False", "Waiting", "pod a") == word(later)
    assert (
        word(conditions.evaluate(later, *look(rotation=RotationDecision()), generation=1, now=NOW))
        is None
    )


def word(conditions_: tuple[ObjectCondition, ...]) -> tuple[str, str, str] | None:
    found = [condition for condition in conditions_ if condition.type == KEY_CONDITION]
    return (found[0].status, found[0].reason, found[0].message) if found else None


def ring(step: int) -> KeyRing:
    key = KeyOfObject(name="a", key="slurm.key")
    return KeyRing(key=key, steps={rings.ring_item(key.key, step): b""} if step else {})


def test_a_controller_keeps_its_step_while_it_is_not_known() -> None:
    before = ControllerStatus(slurm_key_step=4)

    def after(facts: Look) -> int:
        found = conditions.status(before, *facts, generation=1, now=NOW)
        assert isinstance(found, ControllerStatus)
        return found.slurm_key_step

    assert (4, 5, 0) == (
        after(look()),
        after(look(ring=ring(5))),
        after(look(ring=ring(0))),
    )


def test_a_condition_keeps_the_time_of_its_status_and_those_of_others_stay() -> None:
    other = ObjectCondition(type="Other", status="True", reason="Theirs", last_transition_time=NOW)
    first = conditions.evaluate((other,), *look(workloads=(LATE,)), generation=1, now=NOW)
    later = NOW + timedelta(hours=1)

    again = conditions.evaluate(first, *look(workloads=(LATE,)), generation=1, now=later)
    assert again == first
    assert other in again

    ready = told(look(workloads=(READY,)), first, later)
    assert ready["Ready"].last_transition_time == later
    assert ready["Accepted"].last_transition_time == NOW


def in_force(**spec: Any) -> ConfigurationSet:
    return render(inputs(**spec))


def configuration(
    after: ConfigurationInputs, before: Mapping[str, str] | None
) -> ConfigurationPlan:
    return changes.plan_change(after, before, PartitionReading())


def test_a_change_that_would_cost_jobs_does_not_come_into_force() -> None:
    before = in_force(extraConf="SelectType=select/cons_tres")
    after = inputs(extraConf="SelectType=select/linear")

    found = configuration(after, before.files)

    assert "slurm.conf SelectType: this cannot change while the cluster lives" in found.refused
    assert found.files is None
    assert configuration(after, None).files is not None


PLAIN = files(inputs())
IMEX = "SwitchType=switch/nvidia_imex"


@pytest.mark.parametrize(
    ("seen", "replicas", "scaling", "said"),
    [
        (SlurmPartitions(), 0, "StatefulSet", ""),
        (SlurmPartitions(), 1, "StatefulSet", "these NodeSets want workers: cpu"),
        (SlurmPartitions(), 0, "DaemonSet", "these NodeSets want workers: cpu"),
        (SlurmPartitions(live=2), 0, "StatefulSet", "2 running or pending jobs"),
        (SlurmPartitions(open_nodes=3), 0, "StatefulSet", "3 nodes can take jobs"),
        (SlurmPartitions(is_sure=False), 0, "StatefulSet", "Slurm has to be asked once more"),
        (NOT_READ, 0, "StatefulSet", "the state of Slurm is unknown: Slurm has not been asked yet"),
    ],
)
def test_what_costs_only_jobs_may_change_while_there_are_none_and_nothing_to_run_one_on(
    seen: SlurmPartitions, replicas: int, scaling: str, said: str
) -> None:
    workers = node_set(replicas=replicas, scalingMode=scaling)

    found = changes.plan_change(inputs(workers, extraConf=IMEX), PLAIN, PartitionReading(seen=seen))

    if not said:
        assert found.files is not None
        assert IMEX in found.files.files["slurm.conf"]
        return
    assert found.files is None
    assert "while no NodeSet wants workers and Slurm has neither jobs nor nodes" in found.refused
    assert said in found.refused


def test_what_was_decided_while_slurm_was_empty_stays_so_until_it_is_not() -> None:
    after = inputs(extraConf=IMEX)
    decided = files(after)

    def again(seen: SlurmPartitions) -> bool:
        found = changes.plan_change(after, PLAIN, PartitionReading(seen=seen), decided)
        return found.files is not None

    assert again(SlurmPartitions(is_sure=False))
    assert not again(SlurmPartitions(is_sure=False, live=1))
    assert not again(NOT_READ)


def test_what_costs_more_than_jobs_may_not_change_in_an_empty_slurm_either() -> None:
    found = changes.plan_change(
        inputs(extraConf="SelectType=select/linear"),
        PLAIN,
        PartitionReading(seen=SlurmPartitions()),
    )

    assert "slurm.conf SelectType: this cannot change while the cluster lives" in found.refused
    assert "it can while" not in found.refused


def test_a_change_that_slurm_takes_while_it_runs_comes_into_force() -> None:
    before = in_force()
    after = inputs(extraConf="SchedulerParameters=bf_interval=9")

    found = configuration(after, before.files)

    assert found.files is not None
    assert "bf_interval=9" in found.files.files["slurm.conf"]


def test_a_slurmctld_may_move_away_and_back_but_not_become_another_cluster() -> None:
    address = {"host": "slurm.example.org", "port": 6817}
    here, away = inputs(), inputs(external=True, externalConfig=address)
    files_here, files_away = in_force(), in_force(external=True, externalConfig=address)

    assert configuration(away, files_here.files).files is not None
    assert configuration(here, files_away.files).files is not None
    other = configuration(inputs(clusterName="other"), files_away.files)
    assert other.files is None
    assert "slurm.conf ClusterName" in other.refused


def test_what_is_not_all_written_is_not_ready_by_what_was_seen() -> None:
    cut_short = look(workloads=(READY,), failure=INTERRUPTED)
    assert ("Unknown", "NotRead") == (
        told(cut_short)["Ready"].status,
        told(cut_short)["Ready"].reason,
    )

    last = conditions.evaluate((), *look(workloads=(LATE,)), generation=2, now=NOW)
    later = NOW + timedelta(hours=1)
    assert told(cut_short, last, later)["Ready"] in last

    ready = conditions.evaluate((), *look(workloads=(READY,)), generation=2, now=NOW)
    kept = told(cut_short, ready, later)["Ready"]
    assert ("True", 2, NOW) == (kept.status, kept.observed_generation, kept.last_transition_time)
    late = look(workloads=(LATE,), failure=INTERRUPTED)
    assert "False" == told(late, ready, later)["Ready"].status


@pytest.mark.parametrize("replicas", [0, 1, 3])
def test_a_workload_that_is_not_there_is_not_ready(replicas: int) -> None:
    class Nobody:
        async def request(self, method: str, path: str, **_: Any) -> bytes:
            raise errors.NotFound(method, path, message="not found")

    body = {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "a", "namespace": "slurm"},
        "spec": {"replicas": replicas},
    }
    state = asyncio.run(acting.read_workload(Nobody(), body))  # type: ignore[arg-type]  # all it calls
    found = told(look(workloads=(state,)))["Ready"]
    assert ("False", "NotReady") == (found.status, found.reason)
    assert f"StatefulSet a: 0 of {replicas} pods are ready; it does not exist" == found.message
