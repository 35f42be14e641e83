"""Whichever write goes wrong while placeholders are restored or orphans are collected: it ends as it would have without that."""

from datetime import timedelta

import pytest

from bridge.domain import names
from bridge.domain.lifecycle.actions import Restore
from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity, decode
from bridge.process.metrics.pods import PodMetrics
from tests.make.apiserver import Manifest
from tests.make.leader import Outset
from tests.make.manifests import GATED, in_ring, job, kube_node, placed, pod, running
from tests.make.situations import (
    Situation,
    check_that_every_write_may_fail,
    lived_through,
)
from tests.make.slurm import Job
from tests.make.slurm_nodes import Node
from tests.make.trouble import Fault, Trouble
from tests.virtual_time import EPOCH

LOST = 7
"""The id of the job that Slurm has forgotten."""


def identity_of(found: Job) -> Identity:
    identity = decode(found.comment)
    assert identity is not None
    return identity


def bereft(name: str, of: Job, **notes: str) -> Manifest:
    """A pod that runs on, and whose placeholder is not in Slurm."""
    granted = Grant(
        name="train",
        user="user",
        group="group",
        tasks=of.tasks,
        memory_mib_per_node=256,
        started_s=int((EPOCH - timedelta(minutes=4)).timestamp()),
        time_limit_min=60,
    )
    found = placed(name, {names.GRANT_ANNOTATION: grant.encode(identity_of(of), granted), **notes})
    found["metadata"]["labels"][names.JOB_ID_LABEL] = str(LOST)
    found["metadata"]["annotations"][names.SLUID_ANNOTATION] = "lost"
    return found


def outset(pods: list[Manifest], jobs: list[Job], *, next_job_id: int = 0) -> Outset:
    return Outset(
        objects=[kube_node(labels={}), *pods],
        jobs=jobs,
        nodes=[Node(name="k1", states={"IDLE"})],
        next_job_id=next_job_id,
    )


def recreated(name: str) -> Manifest:
    found = pod(name, GATED)
    found["metadata"]["uid"] = "another"
    return found


def restored_gang() -> Outset:
    lost = job(LOST, "a", "b", ring=True, tasks=2)
    return outset([bereft(name, lost, **in_ring(rank)) for rank, name in enumerate("ab")], [])


RESTORED = [
    Situation("slurmctld has lost a job", lambda: outset([bereft("one", job(LOST))], [])),
    Situation("slurmctld has lost the job of a gang", restored_gang),
]
COLLECTED = [
    Situation("a job that waits has no pod", lambda: outset([], [job()])),
    Situation("a job that runs has no pod", lambda: outset([], [running()])),
    Situation("a job without a SLUID has no pod", lambda: outset([], [running(has_sluid=False)])),
    Situation(
        "jobs have no pods, others do",
        lambda: outset(
            [placed("one")], [running(), running(2, "two"), job(3, "a", "b", ring=True)]
        ),
    ),
    Situation(
        "another pod has the name",
        lambda: outset([recreated("one")], [job()]),
    ),
]


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name)
@pytest.mark.parametrize("there", [*RESTORED, *COLLECTED], ids=lambda there: there.name)
def test_after_a_write_that_went_wrong_all_is_as_if_it_had_not(
    there: Situation, fault: Fault
) -> None:
    check_that_every_write_may_fail(there, fault)


@pytest.mark.parametrize("there", RESTORED, ids=lambda there: there.name)
def test_what_is_lost_is_restored_once_on_the_node_of_its_pods(
    there: Situation, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: set[str] = set()
    monkeypatch.setattr(PodMetrics, "decided", lambda _, action: done.add(action))
    leader = lived_through(there, Trouble())
    (restored,) = leader.slurm.jobs.values()
    assert ("RUNNING", "k1") == (restored.state, restored.nodes)
    assert "lost" == identity_of(restored).restores
    assert Restore.__name__ in done
    for found in leader.api.pods.values():
        assert restored.sluid == found["metadata"]["annotations"][names.SLUID_ANNOTATION]


@pytest.mark.parametrize("there", COLLECTED, ids=lambda there: there.name)
def test_only_what_has_no_pod_is_cancelled(there: Situation) -> None:
    leader = lived_through(there, Trouble())
    alive = {job.id for job in leader.slurm.jobs.values() if job.state != "CANCELLED"}
    assert alive == ({1} if "one" in leader.api.pods and "others" in there.name else set())
