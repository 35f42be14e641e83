"""What objects of the control plane are told, and which configuration may come into force."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from slurmoperator.configuration.inputs import ConfigurationInputs
from slurmoperator.configuration.partitions import NOT_READ, SlurmPartitions
from slurmoperator.configuration.rendering import ConfigurationSet, render
from slurmoperator.daemons import conditions, deciding
from slurmoperator.daemons.conditions import PartFacts
from slurmoperator.daemons.workload import WorkloadState
from slurmoperator.keys.rotation import RotationDecision
from slurmoperator.objects.controller import ControllerStatus
from slurmruntime.crd.conditions import ObjectCondition
from slurmruntime.values.faults import Refused
from tests.slurmoperator.configuration.given import files, inputs, node_set

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = WorkloadState(name="StatefulSet a", desired=1, ready=1, pods=1, is_updated=True)
LATE = WorkloadState(
    name="StatefulSet a", desired=1, ready=0, pods=1, is_updated=True, waits=("pod a-0: no image",)
)
LEAVING = msgspec.structs.replace(READY, deleted_claims=("claim s is being deleted",))


def told(
    facts: PartFacts, before: tuple[ObjectCondition, ...] = (), now: datetime = NOW
) -> dict[str, ObjectCondition]:
    found = conditions.evaluate(before, facts, generation=3, now=now)
    return {each.type: each for each in found}


@pytest.mark.parametrize(
    ("facts", "condition_type", "expected"),
    [
        (PartFacts(), "Accepted", ("True", "Accepted", "")),
        (PartFacts(accepted="bad"), "Accepted", ("False", "BadInput", "bad")),
        (
            PartFacts(accepted="x", accepted_reason="NotOurs"),
            "Accepted",
            ("False", "NotOurs", "x"),
        ),
        (
            PartFacts(configured="", digest="abcdef0123456789"),
            "Configured",
            ("True", "InForce", "digest abcdef012345"),
        ),
        (PartFacts(configured="line 3"), "Configured", ("False", "Refused", "line 3")),
        (
            PartFacts(configured="line 3", digest="abcdef0123456789"),
            "Configured",
            ("False", "Refused", "line 3; the configuration in force stays (digest abcdef012345)"),
        ),
        (PartFacts(), "Ready", ("Unknown", "NotRead", "the state of its pods is unknown")),
        (PartFacts(workloads=()), "Ready", ("True", "AllReady", "")),
        (PartFacts(workloads=(READY,)), "Ready", ("True", "AllReady", "")),
        (
            PartFacts(workloads=(READY, LATE)),
            "Ready",
            ("False", "NotReady", "StatefulSet a: 0 of 1 pods are ready; pod a-0: no image"),
        ),
        (
            PartFacts(workloads=(READY, LEAVING)),
            "Ready",
            ("False", "VolumeDeleted", "StatefulSet a: claim s is being deleted"),
        ),
        (
            PartFacts(workloads=(LATE, LEAVING)),
            "Ready",
            (
                "False",
                "NotReady",
                "StatefulSet a: 0 of 1 pods are ready; pod a-0: no image; StatefulSet a: claim s is being deleted",
            ),
        ),
        (
            PartFacts(workloads=(READY,), failures=("422",)),
            "Ready",
            ("False", "Failing", "422"),
        ),
    ],
)
def test_each_condition_says_what_is_wrong(
    facts: PartFacts, condition_type: str, expected: tuple[str, str, str]
) -> None:
    found = told(facts)[condition_type]

    assert (found.status, found.reason, found.message) == expected
    assert found.observed_generation == 3


def test_what_has_no_configuration_is_told_nothing_of_it() -> None:
    assert told(PartFacts()).keys() == {"Accepted", "Ready"}


def test_the_word_on_a_key_holds_until_somebody_has_looked_again() -> None:
    waits = RotationDecision(truth="False", reason="Waiting", message="pod a")
    first = conditions.evaluate((), PartFacts(key=waits), generation=1, now=NOW)
    assert ("False", "Waiting", "pod a") == word(first)

    later = conditions.evaluate(first, PartFacts(accepted="bad"), generation=1, now=NOW)
    assert ("False", "Waiting", "pod a") == word(later)
    assert (
        word(conditions.evaluate(later, PartFacts(key=RotationDecision()), generation=1, now=NOW))
        is None
    )


def word(conditions_: tuple[ObjectCondition, ...]) -> tuple[str, str, str] | None:
    found = [condition for condition in conditions_ if condition.type == conditions.KEY_CONDITION]
    return (found[0].status, found[0].reason, found[0].message) if found else None


def test_a_controller_keeps_its_step_while_it_is_not_known() -> None:
    before = ControllerStatus(slurm_key_step=4)

    def after(facts: PartFacts) -> int:
        found = conditions.status(before, facts, generation=1, now=NOW)
        assert isinstance(found, ControllerStatus)
        return found.slurm_key_step

    assert (4, 5, 0) == (
        after(PartFacts()),
        after(PartFacts(key_step=5)),
        after(PartFacts(key_step=0)),
    )


def test_a_condition_keeps_the_time_of_its_status_and_those_of_others_stay() -> None:
    other = ObjectCondition(type="Other", status="True", reason="Theirs", last_transition_time=NOW)
    first = conditions.evaluate((other,), PartFacts(workloads=(LATE,)), generation=1, now=NOW)
    later = NOW + timedelta(hours=1)

    again = conditions.evaluate(first, PartFacts(workloads=(LATE,)), generation=1, now=later)
    assert again == first
    assert other in again

    ready = told(PartFacts(workloads=(READY,)), first, later)
    assert ready["Ready"].last_transition_time == later
    assert ready["Accepted"].last_transition_time == NOW


def in_force(**spec: Any) -> ConfigurationSet:
    found = render(inputs(**spec))
    assert isinstance(found, ConfigurationSet), found.text
    return found


def configuration(
    after: ConfigurationInputs, before: Mapping[str, str] | None
) -> ConfigurationSet | Refused:
    found = deciding.plan_configuration(after, before, lambda _: NOT_READ)
    return found if isinstance(found, Refused) else found.files


def test_a_change_that_would_cost_jobs_does_not_come_into_force() -> None:
    before = in_force(extraConf="SelectType=select/cons_tres")
    after = inputs(extraConf="SelectType=select/linear")

    found = configuration(after, before.files)

    assert isinstance(found, Refused)
    assert "slurm.conf SelectType: this cannot change while the cluster lives" in found.text
    assert isinstance(configuration(after, None), ConfigurationSet)


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

    found = deciding.plan_configuration(inputs(workers, extraConf=IMEX), PLAIN, lambda _: seen)

    if not said:
        assert not isinstance(found, Refused)
        assert IMEX in found.files.files["slurm.conf"]
        return
    assert isinstance(found, Refused)
    assert "while no NodeSet wants workers and Slurm has neither jobs nor nodes" in found.text
    assert said in found.text


def test_what_was_decided_while_slurm_was_empty_stays_so_until_it_is_not() -> None:
    after = inputs(extraConf=IMEX)
    decided = files(after)

    def again(seen: SlurmPartitions) -> bool:
        found = deciding.plan_configuration(after, PLAIN, lambda _: seen, decided)
        return not isinstance(found, Refused)

    assert again(SlurmPartitions(is_sure=False))
    assert not again(SlurmPartitions(is_sure=False, live=1))
    assert not again(NOT_READ)


def test_what_costs_more_than_jobs_may_not_change_in_an_empty_slurm_either() -> None:
    found = deciding.plan_configuration(
        inputs(extraConf="SelectType=select/linear"), PLAIN, lambda _: SlurmPartitions()
    )

    assert isinstance(found, Refused)
    assert "slurm.conf SelectType: this cannot change while the cluster lives" in found.text
    assert "it can while" not in found.text


def test_a_change_that_slurm_takes_while_it_runs_comes_into_force() -> None:
    before = in_force()
    after = inputs(extraConf="SchedulerParameters=bf_interval=9")

    found = configuration(after, before.files)

    assert isinstance(found, ConfigurationSet)
    assert "bf_interval=9" in found.files["slurm.conf"]


def test_a_slurmctld_may_move_away_and_back_but_not_become_another_cluster() -> None:
    address = {"host": "slurm.example.org", "port": 6817}
    here, away = inputs(), inputs(external=True, externalConfig=address)
    files_here, files_away = in_force(), in_force(external=True, externalConfig=address)

    assert isinstance(configuration(away, files_here.files), ConfigurationSet)
    assert isinstance(configuration(here, files_away.files), ConfigurationSet)
    other = configuration(inputs(clusterName="other"), files_away.files)
    assert isinstance(other, Refused)
    assert "slurm.conf ClusterName" in other.text
