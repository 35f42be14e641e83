"""Which partitions stay in slurm.conf although nobody wants them any more."""

from typing import Any

import pytest

from slurmoperator.configuration import changes, lines, partitions
from slurmoperator.configuration.partitions import (
    NOT_READ,
    JobsOfPartition,
    PartitionReading,
    SlurmPartitions,
)
from tests.slurmoperator.configuration.given import files, inputs, node_set

OLD = (
    "PartitionName=DEFAULT OverSubscribe=NO DefaultTime=10\n"
    "PartitionName=old Nodes=cpu Default=YES MaxTime=60 DefaultTime=5 State=UP Alternate=all\n"
    "PartitionName=all Nodes=ALL\n"
)
NEW = "PartitionName=all Nodes=ALL Default=YES\n"
RUNS = JobsOfPartition(running=("7",))
WAITS = JobsOfPartition(waiting=tuple(map(str, range(8, 15))))
CLOSED = NEW + "PartitionName=old State=INACTIVE OverSubscribe=NO\n"


def seen(jobs: JobsOfPartition | None = None, **changes: Any) -> SlurmPartitions:
    found = {"old": jobs} if jobs else {}
    return SlurmPartitions(**{"states": {"old": "UP"}, "jobs": found, **changes})


def read(found: SlurmPartitions, *names: str) -> PartitionReading:
    return PartitionReading(names=frozenset(names), seen=found)


def line_of(text: str, name: str = "old") -> str:
    return next(
        (each.text for each in lines.read(text) if each.text.startswith(f"PartitionName={name} ")),
        "",
    )


@pytest.mark.parametrize(
    ("before", "found", "state", "said"),
    [
        (OLD, seen(RUNS), "DOWN", "until no job has it: 1 running (7)"),
        (OLD, seen(WAITS), "DOWN", "7 pending (8, 9, 10, 11, 12, …); cancel pending jobs with"),
        (
            OLD,
            NOT_READ,
            "DOWN",
            "it is not known whether jobs have it: Slurm has not been asked yet",
        ),
        (OLD, seen(), "INACTIVE", "until slurmctld accepts no more jobs for it"),
        (CLOSED, seen(), "INACTIVE", "until slurmctld accepts no more jobs for it"),
        (CLOSED, seen(RUNS), "INACTIVE", "until no job has it"),
        (CLOSED, NOT_READ, "INACTIVE", "it is not known"),
        (CLOSED, seen(states={"old": "INACTIVE"}, is_sure=False), "INACTIVE", "accepts no more"),
        (CLOSED, seen(RUNS, states={"old": "INACTIVE"}), "INACTIVE", "until no job has it"),
        (CLOSED, seen(states={"old": "INACTIVE"}), "", ""),
        (CLOSED, seen(states={}), "", ""),  # slurmctld never took its line
    ],
)
def test_a_partition_stays_until_slurmctld_takes_no_more_jobs_for_it_and_has_none(
    before: str, found: SlurmPartitions, state: str, said: str
) -> None:
    kept = partitions.retain({"slurm.conf": NEW}, [{"slurm.conf": before}], found)

    assert [f" State={state} " in each.line for each in kept] == [True] * bool(state)
    assert said in partitions.explain(kept)


def test_its_line_keeps_what_holds_for_jobs_that_run_and_nothing_that_may_have_gone() -> None:
    (kept,) = partitions.retain({"slurm.conf": NEW}, [{"slurm.conf": OLD}], seen(RUNS))

    assert kept.line == "PartitionName=old State=DOWN OverSubscribe=NO DefaultTime=5 MaxTime=60"


def test_what_a_person_may_do_is_said_with_its_commands() -> None:
    said = partitions.explain(
        partitions.retain({"slurm.conf": NEW}, [{"slurm.conf": OLD}], seen(WAITS)),
    )

    assert "`scancel --partition=old --state=PENDING`" in said
    assert "`scontrol update jobid=8 partition=OTHER`" in said


def test_of_many_partitions_only_the_first_are_told() -> None:
    before = "".join(f"PartitionName=p{number}\n" for number in range(500))
    kept = partitions.retain({"slurm.conf": ""}, [{"slurm.conf": before}], NOT_READ)

    assert 500 == len(kept)
    assert len(partitions.explain(kept)) < 1000
    assert "and 497 more partitions stay" in partitions.explain(kept)


CPU = node_set(partition={"enabled": True, "config": "MaxTime=60"})


@pytest.mark.parametrize(
    ("before", "after", "name"),
    [
        (inputs(CPU, extraConf=OLD), inputs(CPU, extraConf=NEW), "old"),
        (inputs(CPU), inputs(node_set(partition={"enabled": False})), "cpu"),
        (inputs(CPU), inputs(node_set(hostname="big-", partition={"enabled": True})), "cpu"),
        (inputs(CPU), inputs(), "cpu"),
    ],
    ids=["a line leaves extraConf", "disabled", "another host name", "a deleted NodeSet"],
)
def test_whatever_way_it_goes_its_jobs_keep_it(before: Any, after: Any, name: str) -> None:
    jobs = SlurmPartitions(states={name: "UP"}, jobs={name: RUNS})

    found = changes.plan_change(after, files(before), read(jobs, name))

    assert found.files is not None
    text = found.files.files["slurm.conf"]
    line = line_of(text, name)
    assert " State=DOWN" in line
    assert "Nodes=" not in line
    assert f"partition {name} is being removed" in found.kept_partitions
    again = changes.plan_change(after, found.files.files, read(jobs, name))
    assert again == found

    for state in ("DOWN", "INACTIVE"):
        shown = SlurmPartitions(states={name: state}, jobs={})
        found = changes.plan_change(after, found.files.files, read(shown, name))
        assert found.files is not None
    decided = changes.plan_change(after, None, PartitionReading())
    assert (decided.files, "") == (found.files, found.kept_partitions)


def test_it_stands_before_what_the_user_says_of_all_partitions() -> None:
    wanted = "PartitionName=DEFAULT Nodes=ALL\n" + NEW
    found = changes.plan_change(
        inputs(extraConf=wanted), files(inputs(CPU, extraConf=OLD)), read(seen(RUNS), "old")
    )

    assert found.files is not None
    text = found.files.files["slurm.conf"]
    assert text.index("PartitionName=old") < text.index("PartitionName=DEFAULT")


def test_a_partition_that_comes_back_is_as_it_is_wanted() -> None:
    kept = files(inputs(CPU, extraConf=CLOSED))
    found = changes.plan_change(inputs(CPU, extraConf=OLD), kept, PartitionReading())

    assert found.files is not None
    assert found.files.files == files(inputs(CPU, extraConf=OLD))


@pytest.mark.parametrize(
    ("before", "coming", "stays"),
    [
        (NEW, OLD, ["DOWN"]),  # slurmctld may have taken it, and nobody has heard of that
        (OLD, CLOSED, ["DOWN"]),
        (CLOSED, OLD, ["DOWN"]),
        (CLOSED, CLOSED, ["INACTIVE"]),
        (CLOSED, NEW, []),  # decided already
        (OLD, NEW, ["DOWN"]),
    ],
)
def test_what_slurmctld_may_have_taken_counts_as_what_it_has(
    before: str, coming: str, stays: list[str]
) -> None:
    kept = partitions.retain(
        {"slurm.conf": NEW}, [{"slurm.conf": before}, {"slurm.conf": coming}], NOT_READ
    )

    assert stays == [each.line.split("State=")[1].split()[0] for each in kept]
