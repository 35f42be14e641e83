"""What leaving pods still hold of what Slurm has given to the next job."""

from dataclasses import replace

import pytest

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import FirstSubmission, Identity
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Neighbours, Pod
from bridge.domain.nodes import vacating
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey
from tests.make import lives
from tests.make import placing as build
from tests.make.placing import demands

NODE = build.kube_node(cpus=8, gib=32)
SMALL = demands("100m", "64Mi")


def granted(cpus: int, memory_mib: int = 64) -> Grant:
    return Grant(
        name="train",
        user="alice",
        group="team",
        cpus_per_task=cpus,
        memory_mib_per_node=memory_mib,
        started_s=1,
    )


def identity(*, exclusive: bool) -> Identity:
    frozen = FirstSubmission(
        requester="r",
        rule="",
        user="alice",
        account="",
        asked={"exclusive": "true"} if exclusive else {},
    )
    return Identity(
        cluster=ClusterId("c"),
        kind="Pod",
        namespace="ns",
        name="train",
        key=WorkloadKey("u"),
        pods=(PodUid("u"),),
        frozen=frozen,
    )


def placed(given: Grant | None, *, exclusive: bool = False, job_id: int = 1) -> Pod:
    text = grant.encode(identity(exclusive=exclusive), given) if given else ""
    return build.pod(
        gates=(),
        demand=SMALL,
        labels={names.JOB_ID_LABEL: str(job_id)},
        annotations={names.GRANT_ANNOTATION: text},
    )


def job(given: Grant | None, *, exclusive: bool = False) -> SlurmJob:
    return replace(lives.job(), grant=given, identity=identity(exclusive=exclusive))


def held(found: SlurmJob, *leaving: Pod, staying: tuple[Pod, ...] = (), beside: int = 0) -> str:
    others = Neighbours()
    for _ in range(beside):
        others = others.joined_by(build.pod(demand=demands("1")))
    return vacating.overlap(
        found, NODE, leaving=leaving, staying=staying, foreign=(), beside=others
    )


@pytest.mark.parametrize(
    ("found", "leaving", "expected"),
    [
        pytest.param(job(granted(4)), [placed(granted(4))], "", id="both have room"),
        pytest.param(
            job(granted(5)),
            [placed(granted(4))],
            "CPUs are still in use",
            id="more CPUs than asked",
        ),
        pytest.param(
            job(granted(1, 20000)),
            [placed(granted(1, 20000))],
            "memory is still in use",
            id="more memory than asked",
        ),
        pytest.param(
            job(granted(1)),
            [placed(granted(1), exclusive=True)],
            "the whole node is still in use",
            id="it had the node for itself",
        ),
        pytest.param(
            job(granted(1), exclusive=True),
            [placed(granted(1))],
            "the whole node is still in use",
            id="it gets the node for itself",
        ),
        pytest.param(
            job(granted(8), exclusive=True), [], "", id="nobody leaves, so Slurm gave nothing twice"
        ),
        pytest.param(job(granted(8)), [placed(None)], "CPUs are still in use", id="no record"),
        pytest.param(job(None), [placed(granted(8))], "", id="Slurm does not say what it gave"),
        pytest.param(
            job(granted(8), exclusive=True),
            [placed(granted(8), exclusive=True, job_id=lives.JOB_ID)],
            "",
            id="a member of its own gang",
        ),
    ],
)
def test_what_was_granted_counts(found: SlurmJob, leaving: list[Pod], expected: str) -> None:
    assert expected == held(found, *leaving)


def test_those_that_stay_count_beside_those_that_leave() -> None:
    leaving, stays = placed(granted(3)), placed(granted(2))

    assert "" == held(job(granted(4)), leaving)
    assert "CPUs" in held(job(granted(4)), leaving, staying=(stays,))
    assert "" == held(job(granted(4)), staying=(stays, stays, stays))


def test_members_that_come_along_count() -> None:
    assert "" == held(job(granted(4)), placed(granted(3)), beside=1)
    assert "CPUs" in held(job(granted(4)), placed(granted(3)), beside=2)


@pytest.mark.parametrize(("parts", "expected"), [(79, ""), (80, "CPUs are still in use")])
def test_what_leaving_pods_hold_is_counted_in_parts_of_a_cpu(parts: int, expected: str) -> None:
    """Setting `slurm.milli_cpu_per_cpu` at 100: the leaving pod takes one of eighty."""
    leaving = [placed(None)]

    assert expected == vacating.overlap(
        job(granted(parts)), NODE, leaving=leaving, staying=(), foreign=(), milli_per_cpu=100
    )
