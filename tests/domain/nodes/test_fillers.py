"""What of a shared machine is held back from Slurm: never too little, and settled in the end."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bridge.domain.lifecycle.actions import Cancel
from bridge.domain.model import demand
from bridge.domain.model.grant import Grant
from bridge.domain.model.hybrid import HybridRule
from bridge.domain.model.jobs import JobPhase, SlurmJob
from bridge.domain.nodes import fillers
from bridge.domain.nodes.fillers import NOTHING, Fill, Portion
from slurmruntime.values.ids import JobId, Sluid
from tests.make import lives
from tests.make import placing as build
from tests.make.registration import PUBLISHING

KUBE = build.kube_node(cpus=8, gib=32)


WHOLE = Portion(cpus=8, memory_mib=1024, gres={"gpu": 2})


def filler(
    number: int,
    cpus: int,
    memory_mib: int,
    phase: JobPhase = JobPhase.RUNNING,
    gres: Mapping[str, int] = NOTHING.gres,
) -> SlurmJob:
    granted = Grant(
        name=fillers.NAME,
        user="root",
        group="root",
        tasks=1,
        cpus_per_task=cpus,
        memory_mib_per_node=memory_mib,
        gres_per_node=",".join(f"gres/{name}:{count}" for name, count in gres.items()),
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

    assert expected == fillers.wanted(KUBE, demand.total(others), slurm_node, PUBLISHING)


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
    assert expected == fillers.decide(target, WHOLE, held)


GPUS = st.sampled_from([{}, {"gpu": 1}, {"gpu": 2}])
SHARES = st.builds(Portion, cpus=st.integers(0, 8), memory_mib=st.integers(0, 1024), gres=GPUS)


@example([Portion(cpus=8), Portion(cpus=8, gres={"gpu": 1})])
@example([Portion(cpus=8), Portion(gres={"gpu": 1})])
@given(st.lists(SHARES, max_size=4))
def test_what_is_wanted_is_held_at_every_moment_of_a_change(targets: list[Portion]) -> None:
    """Nothing is ended before what replaces it starts or is next; and in the end there is little more than needed."""
    held: list[SlurmJob] = []
    waiting: list[tuple[int, Portion]] = []
    number = 0
    for before, target in zip([NOTHING, *targets], targets, strict=False):
        least = before.beyond(before.beyond(target))
        for _ in range(8):
            queued = [filler(id_, 0, 0, JobPhase.WAITING) for id_, _ in waiting]
            for action in fillers.decide(target, WHOLE, [*held, *queued]):
                if isinstance(action, Fill):
                    number += 1
                    waiting.append((number, action.share))
                else:
                    held = [job for job in held if job.id != action.job_id]
                    waiting = [each for each in waiting if each[0] != action.job_id]
            for each in list(waiting):
                id_, share = each
                if WHOLE.beyond(total(held)).covers(share):
                    waiting.remove(each)
                    held.append(filler(id_, share.cpus, share.memory_mib, gres=share.gres))
            assert total(held).covers(least) or target == NOTHING
        assert () == fillers.decide(target, WHOLE, held)
        assert [] == waiting
        assert total(held).covers(target)
        assert total(held).cpus <= max(1, target.cpus) or target == NOTHING
        assert target.gres == total(held).gres


def total(jobs: list[SlurmJob]) -> Portion:
    grants = [job.grant for job in jobs if job.grant]
    gpus = sum(int(grant.gres_per_node.rpartition(":")[2] or 0) for grant in grants)
    return Portion(
        cpus=sum(grant.cpus_per_task for grant in grants),
        memory_mib=sum(grant.memory_mib_per_node for grant in grants),
        gres={"gpu": gpus} if gpus else {},
    )


@pytest.mark.parametrize(
    ("on_kube", "taken", "expected"),
    [
        pytest.param(4, 0, {}, id="nobody"),
        pytest.param(4, 3, {"gpu:a100": 3}, id="some"),
        pytest.param(4, 9, {"gpu:a100": 4}, id="more than there are"),
        pytest.param(0, 0, {}, id="a device plugin restarts"),
        pytest.param(0, 1, {"gpu:a100": 1}, id="and somebody has one"),
        pytest.param(6, 1, {}, id="Slurm has fewer"),
    ],
)
def test_devices_that_others_have_are_held(
    on_kube: int, taken: int, expected: Mapping[str, int]
) -> None:
    labels = {"nvidia.com/gpu.product": "A100"}
    kube_node = build.kube_node(cpus=8, gib=32, gpus=on_kube, labels=labels)
    publishing = replace(PUBLISHING, gpu_type_labels=tuple(labels))
    states = frozenset({"IDLE", "EXTERNAL"})
    slurm_node = build.slurm_node(
        offered_cpus=8, offered_memory_mib=1, gres="gpu:a100:4(S:0-1)", states=states
    )
    others = replace(build.demands("0"), extended={"nvidia.com/gpu": taken, "example.org/x": 1})

    held = fillers.wanted(kube_node, others, slurm_node, publishing)

    assert Portion(gres=expected) == held
    spec = fillers.spec(kube_node, slurm_node, Portion(cpus=1, gres=expected), build.CLUSTER)
    assert spec.gres_per_node == "".join(f"gres/{name}:{n}" for name, n in expected.items())
    native = replace(slurm_node, states=frozenset({"IDLE"}))
    assert Portion() == fillers.wanted(kube_node, others, native, publishing)


def test_none_waits_on_a_node_that_jobs_want_whole() -> None:
    """In turns, a filler would keep every pod's job from starting."""
    native = build.slurm_node(offered_cpus=8, offered_memory_mib=1, states=frozenset({"IDLE"}))
    others = build.demands("1500m")
    rules = {rule: fillers.wanted(KUBE, others, native, PUBLISHING, rule) for rule in HybridRule}

    assert NOTHING == rules.pop(HybridRule.ALTERNATE)
    assert NOTHING not in rules.values()


def test_what_gets_to_an_external_node_past_slurm_is_held_too() -> None:
    """It was registered without what its daemons take; whatever else is there is missing."""
    daemon, squatter = build.demands("1", "1Gi"), build.demands("1500m", "2Gi")
    slurm_node = build.slurm_node(offered_cpus=7, offered_memory_mib=31 * 1024)

    nothing = fillers.wanted(KUBE, demand.total([daemon]), slurm_node, PUBLISHING)
    held = fillers.wanted(KUBE, demand.total([daemon, squatter]), slurm_node, PUBLISHING)

    assert NOTHING == nothing
    assert Portion(cpus=2, memory_mib=2 * 1024) == held


def test_an_external_node_that_is_being_drained_gets_no_filler() -> None:
    """It would never be idle, and so never be removed or registered anew."""
    drained = frozenset({"IDLE", "DRAIN", "EXTERNAL"})
    slurm_node = build.slurm_node(offered_cpus=8, offered_memory_mib=32768, states=drained)

    assert NOTHING == fillers.wanted(KUBE, build.demands("4"), slurm_node, PUBLISHING)
