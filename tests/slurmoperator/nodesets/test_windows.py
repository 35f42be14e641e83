"""`ScheduledUpdate`: workers are replaced in a reservation of Slurm's, which comes before its time and goes with the last of them."""

from datetime import timedelta
from typing import Any

import pytest

from slurmruntime.kube.meta import rfc3339
from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.given import container, current, update
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import EPOCH, VirtualClock, run

pytestmark = pytest.mark.slow

NAME = "SlurmOperatorMaint-gpu"
BEGINS_S, LASTS = 120.0, "4m"
ENDS_S = BEGINS_S + 240.0


def scheduled(*flags: str, begins_s: float = BEGINS_S) -> dict[str, Any]:
    window = {"startTime": rfc3339(EPOCH + timedelta(seconds=begins_s)), "duration": LASTS}
    return {"type": "ScheduledUpdate", "scheduledUpdate": {**window, "flags": [*flags]}}


async def outdated(operator: Operator, *, replicas: int = 2, **strategy: Any) -> None:
    """Let there be workers, and then another template."""
    strategy = strategy or scheduled()
    operator.api.put(node_set(replicas=replicas, updateStrategy=strategy, **container("slurmd:1")))
    await operator.lead(for_s=SETTLED_S)
    assert {} == operator.slurm.reservations
    assert not told(operator)
    update(operator)


def told(operator: Operator) -> tuple[str, ...]:
    """Status and reason of the condition; empty without one."""
    found = operator.api.status("gpu")["conditions"]
    each = next((each for each in found if each["type"] == "ReservationCreated"), None)
    return (each["status"], each["reason"]) if each else ()


async def until(operator: Operator, at_s: float) -> None:
    await operator.lead(for_s=at_s - operator.clock.monotonic())


def test_workers_are_replaced_in_their_reservation_and_not_before() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        await outdated(operator)
        await until(operator, BEGINS_S - 1)
        assert [] == current(operator)
        made = operator.slurm.reservations[NAME]
        assert ["gpu-0", "gpu-1"] == made["node_list"]
        assert {"MAINT", "IGNORE_JOBS"} == {*made["flags"]}
        begin_s = EPOCH.timestamp() + BEGINS_S
        assert (begin_s, 4) == (made["start_time"]["number"], made["duration"]["number"])
        assert ("True", "Reserved") == told(operator)
        updated = operator.api.condition("gpu", "Updated")
        assert ("False", "Scheduled") == (updated["status"], updated["reason"])

        await until(operator, BEGINS_S + 5 * SETTLED_S)
        assert ["gpu-0", "gpu-1"] == current(operator)
        assert {} == operator.slurm.reservations
        assert not told(operator)
        assert "True" == operator.api.condition("gpu", "Updated")["status"]
        assert {""} == {each.reason for each in operator.slurm.nodes.by_name.values()}

    run(main)


def test_who_is_busy_all_the_time_goes_on_and_is_told() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        await outdated(operator)
        operator.slurm.jobs[1] = job(1, "gpu-1")
        await until(operator, BEGINS_S + 3 * SETTLED_S)
        assert ["gpu-0"] == current(operator)
        assert operator.slurm.nodes.by_name["gpu-1"].reason.startswith("slurm-operator: ")
        await until(operator, ENDS_S + 3 * SETTLED_S)
        assert ["gpu-0"] == current(operator)
        assert ("RUNNING", "") == (
            operator.slurm.jobs[1].state,
            operator.slurm.nodes.by_name["gpu-1"].reason,
        )
        assert ("False", "Over") == told(operator)
        assert {} == operator.slurm.reservations

    run(main)


def test_a_window_that_comes_again_is_reserved_again() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        await outdated(operator, **scheduled("hourly"))
        operator.slurm.jobs[1] = job(1, "gpu-1")
        await until(operator, ENDS_S + 2 * SETTLED_S)
        again = operator.slurm.reservations[NAME]
        assert EPOCH.timestamp() + BEGINS_S + 3600 == again["start_time"]["number"]
        del operator.slurm.jobs[1]
        await until(operator, BEGINS_S + 3600 + 3 * SETTLED_S)
        assert ["gpu-0", "gpu-1"] == current(operator)

    run(main)


def test_another_worker_that_comes_or_goes_costs_nobody_the_reservation() -> None:
    """While it is made anew, jobs may start on all of its nodes."""

    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        await outdated(operator)
        operator.slurm.jobs[1] = job(1, "gpu-1")
        await until(operator, BEGINS_S + 2 * SETTLED_S)
        assert ["gpu-0"] == current(operator)
        assert ["gpu-0", "gpu-1"] == operator.slurm.reservations[NAME]["node_list"]

        update(operator, "slurmd:3")
        operator.api.change("NodeSet", "gpu", spec={"replicas": 3})
        await operator.lead(for_s=SETTLED_S)
        update(operator, "slurmd:4")
        await operator.lead(for_s=SETTLED_S / 2)
        assert {"gpu-1", "gpu-2"} <= {*operator.slurm.reservations[NAME]["node_list"]}
        del operator.slurm.nodes.by_name["gpu-0"]
        await operator.lead(for_s=SETTLED_S)

        assert "RUNNING" == operator.slurm.jobs[1].state
        assert ("True", "Reserved") == told(operator)
        assert not [
            write for write in operator.trouble.writes if write.startswith("DELETE /reserv")
        ]

    run(main)


@pytest.mark.parametrize("change", ["RollingUpdate", "OnDelete", "back", "deleted"])
def test_a_reservation_that_is_not_needed_any_more_goes(change: str) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        await outdated(operator)
        await operator.lead(for_s=SETTLED_S)
        assert {NAME} == operator.slurm.reservations.keys()
        if change == "deleted":
            meta = operator.api.of("NodeSet")["gpu"]["metadata"]
            gone = {**meta, "deletionTimestamp": "2026-01-01T00:00:00Z"}
            operator.api.change("NodeSet", "gpu", metadata=gone)
        elif change == "back":
            update(operator, "slurmd:1")
        else:
            operator.api.change("NodeSet", "gpu", spec={"updateStrategy": {"type": change}})
        await operator.lead(for_s=3 * SETTLED_S)
        assert {} == operator.slurm.reservations
        if change == "deleted":
            assert {} == operator.api.of("NodeSet")
        else:
            assert not told(operator)
            assert ["gpu-0", "gpu-1"] == names_of(operator.api.pods)

    run(main)


def test_what_slurm_refuses_is_told_and_replaces_nobody() -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        await outdated(operator)
        operator.slurm.refused_reservations = "Requested nodes are busy"
        await until(operator, BEGINS_S + SETTLED_S)
        assert ("False", "Refused") == told(operator)
        condition = operator.api.condition("gpu", "ReservationCreated")
        assert "Requested nodes are busy" in condition["message"]
        assert [] == current(operator)
        tried = [write for write in operator.trouble.writes if "/reservation" in write]
        assert len(tried) <= (BEGINS_S + SETTLED_S) / 60 + 2
        operator.slurm.refused_reservations = ""
        await until(operator, ENDS_S)
        assert ["gpu-0", "gpu-1"] == current(operator)

    run(main)


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 25))
def test_whatever_write_fails_it_comes_out_the_same_and_no_job_is_lost(
    fault: Fault, at: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        await outdated(operator)
        operator.slurm.jobs[1] = job(1, "gpu-1")
        await until(operator, BEGINS_S - 1)
        assert [] == current(operator)
        assert {NAME} == operator.slurm.reservations.keys()
        await until(operator, BEGINS_S + 4 * SETTLED_S)
        assert ["gpu-0"] == current(operator)
        assert "RUNNING" == operator.slurm.jobs[1].state
        del operator.slurm.jobs[1]
        await until(operator, ENDS_S)
        assert ["gpu-0", "gpu-1"] == current(operator)
        assert ({}, ()) == (operator.slurm.reservations, told(operator))
        assert len(operator.trouble.writes) >= 24, "there are writes at which none failed"

    run(main)
