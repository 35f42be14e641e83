"""What of a shared machine is held back from Slurm: never too little, and settled in the end."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.ids import JobId, Sluid
from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model import demand
from bridge.domain.model.grant import Grant
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes import fillers
from bridge.domain.nodes.fillers import NOTHING, Fill, Portion
from tests.make import lives
from tests.make import placing as build

KUBE = build.kube_node(cpus=8, gib=32)


def filler(number: int, cpus: int, memory_mib: int, phase: JobPhase = JobPhase.RUNNING) -> SlurmJob:
    granted = Grant(
        name=fillers.NAME,
        user="root",
        group="root",
        tasks=1,
        cpus_per_task=cpus,
        memory_mib_per_node=memory_mib,
        started_s=0,
    )
    return replace(
        lives.job(),
        id=JobId(number),
        sluid=Sluid(f"s{number}"),
        phase=phase,
        grant=granted if phase is JobPhase.RUNNING else None,
    )


def cancel(number: int) -> Cancel:
    return Cancel(job_id=JobId(number), sluid=Sluid(f"s{number}"))


@pytest.mark.parametrize(
    ("others", "cpus", "memory_mib", "expected"),
    [
        ([], 8, 32 * 1024, NOTHING),
        ([build.demands("100m", "64Mi")] * 3, 8, 32 * 1024, Portion(cpus=1, memory_mib=192)),
        ([build.demands("1500m", "1Gi")], 8, 32 * 1024, Portion(cpus=2, memory_mib=1024)),
        ([], 10, 40 * 1024, Portion(cpus=2, memory_mib=8 * 1024)),
        ([build.demands("99", "1Ti")], 8, 1024, Portion(cpus=8, memory_mib=1024)),
        ([], 4, 1024, NOTHING),
    ],
    ids=["nobody", "daemons are added up first", "one pod", "kubelet's share", "more than all", ""],
)
def test_the_difference_between_what_both_offer_is_held(
    others: list[demand.Demand], cpus: int, memory_mib: int, expected: Portion
) -> None:
    slurm_node = build.slurm_node(offered_cpus=cpus, offered_memory_mib=memory_mib)

    assert expected == fillers.wanted(KUBE, demand.total(others), slurm_node)


@pytest.mark.parametrize(
    ("target", "held", "expected"),
    [
        pytest.param(NOTHING, [], (), id="nothing"),
        pytest.param(
            Portion(cpus=2, memory_mib=9),
            [],
            (Fill(share=Portion(cpus=2, memory_mib=9)),),
            id="first",
        ),
        pytest.param(Portion(cpus=2, memory_mib=9), [filler(1, 2, 9)], (), id="held"),
        pytest.param(
            Portion(cpus=3, memory_mib=9),
            [filler(1, 2, 9)],
            (Fill(share=Portion(cpus=1, memory_mib=1)),),
            id="one more CPU",
        ),
        pytest.param(
            Portion(cpus=3, memory_mib=9),
            [filler(1, 2, 9), filler(2, 1, 1, JobPhase.WAITING)],
            (),
            id="it is on its way",
        ),
        pytest.param(
            Portion(cpus=1, memory_mib=9),
            [filler(1, 2, 9), filler(2, 1, 9)],
            (cancel(1),),
            id="one is spare",
        ),
        pytest.param(
            Portion(cpus=1, memory_mib=9),
            [filler(1, 2, 9)],
            (Fill(share=Portion(cpus=1, memory_mib=9)),),
            id="smaller first",
        ),
        pytest.param(
            Portion(cpus=1, memory_mib=9),
            [filler(1, 1, 9 + fillers.SLACK_MIB - 1)],
            (),
            id="near enough",
        ),
        pytest.param(
            NOTHING,
            [filler(1, 2, 9), filler(2, 1, 1, JobPhase.WAITING)],
            (cancel(1), cancel(2)),
            id="none any more",
        ),
    ],
)
def test_one_step_at_a_time(
    target: Portion, held: list[SlurmJob], expected: tuple[fillers.FillerAction, ...]
) -> None:
    assert expected == fillers.decide(target, held)


SHARES = st.builds(Portion, cpus=st.integers(0, 8), memory_mib=st.integers(0, 1024))


@given(st.lists(SHARES, max_size=4))
def test_what_is_wanted_is_held_at_every_moment_of_a_change(targets: list[Portion]) -> None:
    """Each filler starts before another one is ended for it; and in the end there is little more than needed."""
    held: list[SlurmJob] = []
    number = 0
    for before, target in zip([NOTHING, *targets], targets, strict=False):
        least = Portion(
            cpus=min(before.cpus, target.cpus), memory_mib=min(before.memory_mib, target.memory_mib)
        )
        for _ in range(8):
            for action in fillers.decide(target, held):
                if isinstance(action, Fill):
                    number += 1
                    held.append(filler(number, action.share.cpus, action.share.memory_mib))
                else:
                    held = [job for job in held if job.id != action.job_id]
                assert total(held).covers(least) or target == NOTHING
        assert () == fillers.decide(target, held)
        assert total(held).covers(target)
        assert total(held).cpus <= max(1, target.cpus) or target == NOTHING


def total(jobs: list[SlurmJob]) -> Portion:
    grants = [job.grant for job in jobs if job.grant]
    return Portion(
        cpus=sum(grant.cpus_per_task for grant in grants),
        memory_mib=sum(grant.memory_mib_per_node for grant in grants),
    )


def test_what_gets_to_an_external_node_past_slurm_is_held_too() -> None:
    """It was registered without what its daemons take; whatever else is there is missing."""
    daemon, squatter = build.demands("1", "1Gi"), build.demands("1500m", "2Gi")
    slurm_node = build.slurm_node(offered_cpus=7, offered_memory_mib=31 * 1024)

    nothing = fillers.wanted(KUBE, demand.total([daemon]), slurm_node)
    held = fillers.wanted(KUBE, demand.total([daemon, squatter]), slurm_node)

    assert NOTHING == nothing
    assert Portion(cpus=2, memory_mib=2 * 1024) == held


def test_an_external_node_that_is_being_drained_gets_no_filler() -> None:
    """It would never be idle, and so never be removed or registered anew."""
    drained = frozenset({"IDLE", "DRAIN", "EXTERNAL"})
    slurm_node = build.slurm_node(offered_cpus=8, offered_memory_mib=32768, states=drained)

    assert NOTHING == fillers.wanted(KUBE, build.demands("4"), slurm_node)
