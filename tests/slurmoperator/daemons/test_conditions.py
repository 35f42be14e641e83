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
from slurmoperator.configuration.rendering import ConfigurationSet, render
from slurmoperator.daemons import acting, conditions
from slurmoperator.daemons.conditions import PartReport
from slurmoperator.daemons.situation import WorkloadState
from slurmoperator.keys.rotation import KEY_CONDITION, RotationDecision
from slurmoperator.objects.controller import ControllerStatus
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.kube import errors
from tests.slurmoperator.configuration.given import files, inputs, node_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = WorkloadState(name="StatefulSet a", desired=1, ready=1, pods=1, is_updated=True)
LATE = WorkloadState(
    name="StatefulSet a", desired=1, ready=0, pods=1, is_updated=True, waits=("pod a-0: no image",)
)
LEAVING = replace(READY, deleted_claims=("claim s is being deleted",))


def told(
    facts: PartReport, before: tuple[ObjectCondition, ...] = (), now: datetime = NOW
) -> dict[str, ObjectCondition]:
    found = conditions.evaluate(before, facts, generation=3, now=now)
    return {each.type: each for each in found}


@pytest.mark.parametrize(
    ("facts", "condition_type", "expected"),
    [
        (PartReport(), "Accepted", ("True", "Accepted", "")),
        (PartReport(accepted="bad"), "Accepted", ("False", "BadInput", "bad")),
        (
            PartReport(accepted="x", accepted_reason="NotOurs"),
            "Accepted",
            ("False", "NotOurs", "x"),
        ),
        (
            PartReport(configured="", digest="abcdef0123456789"),
            "Configured",
            ("True", "InForce", "digest abcdef012345"),
        ),
        (PartReport(configured="line 3"), "Configured", ("False", "Refused", "line 3")),
        (
            PartReport(configured="line 3", digest="abcdef0123456789"),
            "Configured",
            ("False", "Refused", "line 3; the configuration in force stays (digest abcdef012345)"),
        ),
        (PartReport(), "Ready", ("Unknown", "NotRead", "the state of its pods is unknown")),
        (PartReport(workloads=()), "Ready", ("True", "AllReady", "")),
        (PartReport(workloads=(READY,)), "Ready", ("True", "AllReady", "")),
        (
            PartReport(workloads=(READY, LATE)),
            "Ready",
            ("False", "NotReady", "StatefulSet a: 0 of 1 pods are ready; pod a-0: no image"),
        ),
        (
            PartReport(workloads=(READY, LEAVING)),
            "Ready",
            ("False", "VolumeDeleted", "StatefulSet a: claim s is being deleted"),
        ),
        (
            PartReport(workloads=(LATE, LEAVING)),
            "Ready",
            (
                "False",
                "NotReady",
                "StatefulSet a: 0 of 1 pods are ready; pod a-0: no image; StatefulSet a: claim s is being deleted",
            ),
        ),
        (
            PartReport(workloads=(READY,), failures=("422",)),
            "Ready",
            ("False", "Failing", "422"),
        ),
    ],
)
def test_each_condition_says_what_is_wrong(
    facts: PartReport, condition_type: str, expected: tuple[str, str, str]
) -> None:
    found = told(facts)[condition_type]

    assert (found.status, found.reason, found.message) == expected
    assert found.observed_generation == 3


def test_what_has_no_configuration_is_told_nothing_of_it() -> None:
    assert told(PartReport()).keys() == {"Accepted", "Ready"}


def test_the_word_on_a_key_holds_until_somebody_has_looked_again() -> None:
    waits = RotationDecision(truth="False", reason="Waiting", message="pod a")
    first = conditions.evaluate((), PartReport(key=waits), generation=1, now=NOW)
    assert ("False", "Waiting", "pod a") == word(first)

    later = conditions.evaluate(first, PartReport(accepted="bad"), generation=1, now=NOW)
    assert ("False", "Waiting", "pod a") == word(later)
    assert (
        word(conditions.evaluate(later, PartReport(key=RotationDecision()), generation=1, now=NOW))
        is None
    )


def word(conditions_: tuple[ObjectCondition, ...]) -> tuple[str, str, str] | None:
    found = [condition for condition in conditions_ if condition.type == KEY_CONDITION]
    return (found[0].status, found[0].reason, found[0].message) if found else None


def test_a_controller_keeps_its_step_while_it_is_not_known() -> None:
    before = ControllerStatus(slurm_key_step=4)

    def after(facts: PartReport) -> int:
        found = conditions.status(before, facts, generation=1, now=NOW)
        assert isinstance(found, ControllerStatus)
        return found.slurm_key_step

    assert (4, 5, 0) == (
        after(PartReport()),
        after(PartReport(key_step=5)),
        after(PartReport(key_step=0)),
    )


def test_a_condition_keeps_the_time_of_its_status_and_those_of_others_stay() -> None:
    other = ObjectCondition(type="Other", status="True", reason="Theirs", last_transition_time=NOW)
    first = conditions.evaluate((other,), PartReport(workloads=(LATE,)), generation=1, now=NOW)
    later = NOW + timedelta(hours=1)

    again = conditions.evaluate(first, PartReport(workloads=(LATE,)), generation=1, now=later)
    assert again == first
    assert other in again

    ready = told(PartReport(workloads=(READY,)), first, later)
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
    cut_short = PartReport(workloads=(READY,), is_interrupted=True)
    assert ("Unknown", "NotRead") == (
        told(cut_short)["Ready"].status,
        told(cut_short)["Ready"].reason,
    )

    last = conditions.evaluate((), PartReport(workloads=(LATE,)), generation=2, now=NOW)
    later = NOW + timedelta(hours=1)
    assert told(cut_short, last, later)["Ready"] in last

    ready = conditions.evaluate((), PartReport(workloads=(READY,)), generation=2, now=NOW)
    kept = told(cut_short, ready, later)["Ready"]
    assert ("True", 2, NOW) == (kept.status, kept.observed_generation, kept.last_transition_time)
    late = PartReport(workloads=(LATE,), is_interrupted=True)
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
    found = told(PartReport(workloads=(state,)))["Ready"]
    assert ("False", "NotReady") == (found.status, found.reason)
    assert f"StatefulSet a: 0 of {replicas} pods are ready; it does not exist" == found.message
