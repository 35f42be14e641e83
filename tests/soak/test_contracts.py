"""The soak's own eyes: each breach is seen, and what is well is not taken for one."""

import msgspec
import pytest

from bridge.domain.model.identities import Identity
from slurmruntime.values.ids import ClusterId, PodUid, WorkloadKey
from tests.integration.worlds import Job
from tests.soak import contracts
from tests.soak.contracts import Ended, Pod
from tests.soak.lives import Fate, Life


def pod(
    uid: str = "u1", *, node: str = "node-1", phase: str = "Running", disruption: str = ""
) -> Pod:
    conditions = [{"type": "DisruptionTarget", "reason": disruption}] if disruption else []
    manifest = {
        "metadata": {"name": f"pod-{uid}", "uid": uid},
        "spec": {"nodeName": node},
        "status": {"phase": phase, "conditions": conditions},
    }
    return msgspec.convert(manifest, Pod)


def job(
    number: int = 7,
    uid: str = "u1",
    *,
    state: str = "RUNNING",
    nodes: str = "node-1",
    code: str = "0:0",
    cause: str = "",
) -> Job:
    identity = Identity(
        cluster=ClusterId("c"),
        kind="Pod",
        namespace="ns",
        name="p",
        key=WorkloadKey(uid),
        pods=(PodUid(uid),),
        cause=cause,
    )
    return Job(number, state, code, nodes, "", None, identity)


ENDS = Life(name="ends", fate=Fate.ENDS)
FAILS = Life(name="fails", fate=Fate.ENDS, exit_code=3)
DELETED = Life(name="deleted", fate=Fate.DELETED)
HELD = Life(name="held", fate=Fate.DELETED_EARLY)


def test_one_placeholder_for_each_pod_on_its_node_is_well() -> None:
    pods = [pod("u1"), pod("u2", node="")]
    jobs = [job(1, "u1"), job(2, "u2", state="PENDING", nodes=""), job(3, "u3", state="CANCELLED")]

    assert [] == list(contracts.placements(pods, jobs))


@pytest.mark.parametrize(
    ("pods", "jobs"),
    [
        pytest.param([pod()], [], id="a pod without one"),
        pytest.param([], [job()], id="one without a pod"),
        pytest.param([pod()], [job(1), job(2)], id="two for one pod"),
        pytest.param([pod()], [job(nodes="node-2")], id="on another node"),
        pytest.param([pod()], [job(state="PENDING", nodes="")], id="on a node it does not hold"),
    ],
)
def test_what_does_not_match_is_a_breach(pods: list[Pod], jobs: list[Job]) -> None:
    assert [] != list(contracts.placements(pods, jobs))


def test_an_eviction_needs_a_cause() -> None:
    evicted = pod(disruption="SlurmCancelled")

    assert [] != list(contracts.fairness(ENDS, evicted))
    assert [] == list(contracts.fairness(Life(name="x", fate=Fate.CANCELLED), evicted))


@pytest.mark.parametrize(
    ("life", "jobs"),
    [
        pytest.param(ENDS, [job(state="COMPLETED")], id="success"),
        pytest.param(FAILS, [job(state="FAILED", code="3:0")], id="failure"),
        pytest.param(DELETED, [job(state="CANCELLED")], id="deletion"),
        pytest.param(HELD, [], id="deletion of one that was held"),
        pytest.param(
            ENDS, [job(1, state="CANCELLED", cause="spare"), job(2, state="COMPLETED")], id="spare"
        ),
    ],
)
def test_a_true_account_is_well(life: Life, jobs: list[Job]) -> None:
    assert [] == list(contracts.accounts({"u1": Ended(life, "")}, jobs))


@pytest.mark.parametrize(
    ("life", "jobs"),
    [
        pytest.param(ENDS, [], id="none"),
        pytest.param(ENDS, [job(state="CANCELLED")], id="another end"),
        pytest.param(FAILS, [job(state="FAILED", code="1:0")], id="another exit code"),
        pytest.param(ENDS, [job(state="RUNNING")], id="still running"),
        pytest.param(ENDS, [job(1, state="CANCELLED"), job(2, state="COMPLETED")], id="two"),
        pytest.param(DELETED, [job(state="COMPLETED")], id="completed though it was deleted"),
    ],
)
def test_a_wrong_account_is_a_breach(life: Life, jobs: list[Job]) -> None:
    assert [] != list(contracts.accounts({"u1": Ended(life, "")}, jobs))


def test_ends_are_counted_by_what_both_worlds_say() -> None:
    lives = {"u1": Ended(ENDS, "Succeeded"), "u2": Ended(FAILS, "Failed"), "u3": Ended(HELD, "")}
    jobs = [job(1, "u1", state="COMPLETED"), job(2, "u2", state="FAILED", code="3:0")]

    assert {
        ("Succeeded", "COMPLETED 0:0"): 1,
        ("Failed", "FAILED 3:0"): 1,
        ("is deleted while it waits", "no job"): 1,
    } == contracts.ends(lives, jobs)
