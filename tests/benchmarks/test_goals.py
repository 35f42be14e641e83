"""A goal is reached up to its limit, and every one is looked at."""

import msgspec
import pytest

from benchmarks import apiserver, micro, scenarios
from benchmarks.goals import Goal, goals
from benchmarks.meter import SERVICES
from benchmarks.results import (
    ApiWork,
    Idle,
    Machine,
    Micro,
    Phase,
    Run,
    Shape,
    Spread,
    Usage,
    spread,
)


def phase(wall_s: float, cpu_s: float = 0.0, calls: dict[str, int] | None = None) -> Phase:
    usage = Usage(
        cpu_s={**dict.fromkeys(SERVICES, cpu_s), "slurmrestd": cpu_s, "apiserver": 9.0},
        memory_mib={**dict.fromkeys(SERVICES, 100.0), "slurmctld": 999.0},
        calls=calls or {},
    )
    return Phase(pods=200, wall_s=wall_s, usage=usage)


def freed(wall_s: float, first_s: float | None, first_200_s: float | None) -> Phase:
    return msgspec.structs.replace(phase(wall_s), first_s=first_s, first_200_s=first_200_s)


def work(allocations: float) -> ApiWork:
    return ApiWork(count=100, allocations=allocations, cpu_s=1, took_s=1)


RUN = Run(
    commit="",
    began_at="",
    machine=Machine(cores=2, processor="", memory_gib=1, python="", load_before=0),
    shape=Shape(pods=200, nodes=100, waiting_s=40, is_profiled=False),
    phases={
        scenarios.PLAIN: phase(2.4),
        scenarios.BOUND: phase(
            6.0, calls={"a → Slurm job.submit": 200, "b → Slurm job.get": 600, "c → filter": 200}
        ),
        scenarios.ENDED: phase(2.0),
        scenarios.LIFE: phase(10.0, cpu_s=0.399),
        scenarios.WAITING: phase(40.0, cpu_s=0.25),
        scenarios.FREED: freed(2.2, 0.15, 2.2),
    },
    micro={
        micro.WEBHOOK: Micro(count=2000, cpu_ms=1, per_s=200, spread=spread([0.010])),
        micro.FILTER: Micro(count=2000, cpu_ms=1),
        micro.CACHES: Micro(count=10_000, cpu_ms=1, memory_mib=300.0),
    },
    lives={apiserver.PLAIN: work(25.0), apiserver.BRIDGED: work(35.0)},
    strangers={
        apiserver.LIFE: (work(100.0), work(104.9)),
        apiserver.UPDATE: (work(100.0), work(100.9)),
        apiserver.STATUS: (work(40.0), work(40.3)),
    },
    single=Spread(p50_s=0.08, p99_s=0.1, longest_s=0.2),
    idle=Idle(minutes=10, bound_s=0.2),
)


def found(run: Run) -> dict[str, Goal]:
    return {goal.name: goal for goal in goals(run)}


def test_a_run_that_is_exactly_good_enough_reaches_every_goal() -> None:
    assert [] == [goal for goal in goals(RUN) if not goal.is_reached]


@pytest.mark.parametrize(
    ("name", "worse", "missed"),
    [
        (
            scenarios.BOUND,
            phase(6.1, calls={"c → filter": 200}),
            "all bound ÷ kube-scheduler alone",
        ),
        (scenarios.BOUND, phase(6, calls={"c → filter": 201}), "filter calls per pod"),
        (scenarios.WAITING, phase(40, calls={"c → filter": 1}), "filter calls while waiting"),
        (
            scenarios.BOUND,
            phase(6, calls={"a → Slurm x": 801, "c → filter": 200}),
            "Slurm calls per pod, CREATE to bound",
        ),
        (scenarios.LIFE, phase(10, cpu_s=0.401), "our CPU per pod, whole life"),
        (
            scenarios.WAITING,
            phase(40, cpu_s=0.251),
            "CPU of ours and slurmrestd in 40 s of waiting",
        ),
        (scenarios.FREED, freed(2.3, 0.15, 2.201), "freed to 200 bound"),
        (scenarios.FREED, freed(2.2, 0.151, 2.2), "freed to first bound"),
        (scenarios.FREED, phase(2.3), "freed to 200 bound"),
    ],
)
def test_a_little_more_misses_the_goal(name: str, worse: Phase, missed: str) -> None:
    run = msgspec.structs.replace(RUN, phases={**RUN.phases, name: worse})

    assert [missed] == [goal.name for goal in goals(run) if not goal.is_reached]


def test_less_than_one_filter_call_per_pod_is_a_fault_of_the_measurement() -> None:
    run = msgspec.structs.replace(
        RUN, phases={**RUN.phases, scenarios.BOUND: phase(6, calls={"c → filter": 199})}
    )

    assert "filter calls per pod" in {goal.name for goal in goals(run) if not goal.is_reached}


@pytest.mark.parametrize(("wall_s", "is_reached"), [(5.5, True), (5.51, False)])
def test_ten_times_the_nodes_may_cost_a_tenth(wall_s: float, is_reached: bool) -> None:
    before = msgspec.structs.replace(RUN, phases={**RUN.phases, scenarios.BOUND: phase(5.0)})
    shape = msgspec.structs.replace(RUN.shape, nodes=1000)
    many = msgspec.structs.replace(
        RUN, shape=shape, phases={**RUN.phases, scenarios.BOUND: phase(wall_s)}
    )

    verdicts = {goal.name: goal.is_reached for goal in goals(many, before)}

    assert is_reached is verdicts["all bound, 1000 nodes instead of 100"]
    assert not [name for name in found(RUN) if "instead of" in name]


def test_a_thousand_pods_have_limits_of_their_own() -> None:
    shape = msgspec.structs.replace(RUN.shape, pods=1000)
    many = found(msgspec.structs.replace(RUN, shape=shape))

    assert (6, 8) == tuple(each["our CPU per pod, whole life"].limit for each in (found(RUN), many))


def test_of_many_freed_pods_the_200th_is_judged() -> None:
    many = msgspec.structs.replace(freed(9.0, 0.1, 2.0), pods=1000)
    run = msgspec.structs.replace(RUN, phases={**RUN.phases, scenarios.FREED: many})

    assert 2.0 == found(run)["freed to 200 bound"].found


def test_on_a_thousand_nodes_freeing_may_take_longer() -> None:
    shape = msgspec.structs.replace(RUN.shape, nodes=1000)

    assert 3 == found(msgspec.structs.replace(RUN, shape=shape))["freed to 200 bound"].limit


def test_a_service_that_does_not_run_has_no_goal() -> None:
    def without(phase: Phase) -> Phase:
        kept = {k: v for k, v in phase.usage.memory_mib.items() if k != "controllers"}
        return msgspec.structs.replace(
            phase, usage=msgspec.structs.replace(phase.usage, memory_mib=kept)
        )

    phases = {name: without(phase) for name, phase in RUN.phases.items()}

    assert "memory of controllers" not in found(msgspec.structs.replace(RUN, phases=phases))


def test_memory_is_the_most_that_was_seen() -> None:
    assert 100.0 == found(RUN)["memory of extender"].found


@pytest.mark.parametrize(
    ("changed", "missed"),
    [
        (
            {"lives": {apiserver.PLAIN: work(25.0), apiserver.BRIDGED: work(35.1)}},
            "API server, whole life ÷ plain's",
        ),
        (
            {
                "strangers": {
                    **RUN.strangers,
                    apiserver.LIFE: (work(100.0), work(105.1)),
                }
            },
            "pods not ours, whole life: more",
        ),
        (
            {"strangers": {**RUN.strangers, apiserver.STATUS: (work(40.0), work(40.5))}},
            "pods not ours, a status: more",
        ),
        (
            {"strangers": {**RUN.strangers, apiserver.UPDATE: (work(40.0), work(40.5))}},
            "pods not ours, an annotation: more",
        ),
        ({"idle": Idle(minutes=10, bound_s=0.21)}, "first pod after 10 minutes without any"),
        ({"single": Spread(p50_s=0.081, p99_s=0.1, longest_s=0.2)}, "single pods, p50"),
        ({"single": Spread(p50_s=0.08, p99_s=0.1, longest_s=0.21)}, "single pods, longest"),
    ],
)
def test_so_does_the_api_server(changed: dict[str, object], missed: str) -> None:
    run = msgspec.structs.replace(RUN, **changed)

    assert [missed] == [goal.name for goal in goals(run) if not goal.is_reached]


def test_a_short_run_is_judged_by_what_it_measured() -> None:
    short = msgspec.structs.replace(RUN, micro={}, lives={}, strangers={}, single=None, idle=None)
    names = {goal.name for goal in goals(short)}

    assert "all bound ÷ kube-scheduler alone" in names
    assert not {name for name in names if "webhook at" in name or "API server" in name}
