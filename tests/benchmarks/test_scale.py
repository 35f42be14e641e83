"""The sizes fit together, and each goal of the many is judged."""

import pytest

from benchmarks.results import Usage
from benchmarks.scale import costs
from benchmarks.scale.size import Size


def usage(cpu_s: float, **more: float) -> Usage:
    parts = dict.fromkeys(costs.PARTS, cpu_s) | more
    return Usage(cpu_s=parts, memory_mib=dict.fromkeys(costs.PARTS, 300.0), calls={})


@pytest.mark.parametrize(("running", "nodes"), [(5000, 2000), (1, 1), (1, 7), (10, 3)])
def test_the_running_pods_fill_the_nodes_and_are_at_least_as_many_as_asked_for(
    running: int, nodes: int
) -> None:
    size = Size(running=running, nodes=nodes)

    assert size.filling == size.options(()).nodes * size.options(()).node_cpus
    assert running <= size.filling < running + nodes


def test_jobs_of_strangers_may_take_a_tenth_of_a_core() -> None:
    size = Size(seconds=40)

    assert costs.of_strangers(usage(0, slurmrestd=4.0), size).cells()[3] == "reached"
    assert costs.of_strangers(usage(0, slurmrestd=4.1), size).cells()[3] == "MISSED"


@pytest.mark.parametrize(
    ("each_s", "slurmctld_s", "verdicts"),
    [
        (0.5, 3.0, ["reached", "reached"]),
        (0.51, 3.0, ["MISSED", "reached"]),
        (0.5, 3.1, ["reached", "MISSED"]),
    ],
)
def test_waiting_is_judged_beside_the_same_queue_without_us(
    each_s: float, slurmctld_s: float, verdicts: list[str]
) -> None:
    alone = usage(0, slurmctld=2.0)
    found = list(costs.of_waiting(usage(each_s, slurmctld=slurmctld_s), alone, Size(seconds=40)))

    assert verdicts == [figure.cells()[3] for figure in found[:2]]
    assert ["reached"] * 3 == [figure.cells()[3] for figure in found[2:]]


def test_a_shorter_rest_has_a_smaller_limit() -> None:
    (ours, *_) = costs.of_waiting(usage(0.2), usage(0), Size(seconds=10))

    assert 0.5 == ours.most
    assert "MISSED" == ours.cells()[3]


def test_what_it_took_to_know_all_jobs_again_is_told_with_its_requests() -> None:
    counted = Usage(
        cpu_s={},
        memory_mib={},
        calls={"extender → Slurm job.get": 7, "controllers → Slurm job.states": 2},
    )
    took, cpu = costs.of_reading_anew("new leaders", 3.5, counted)

    assert "7 job.get, 2 lists" in took.cells()[1]
    assert cpu.found == 0
