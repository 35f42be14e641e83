"""What a leader of the controllers may find: situations of pods."""

from datetime import timedelta

from bridge.domain.model import grant
from bridge.domain.model.grant import Grant
from bridge.domain.model.identities import Identity, decode
from slurmruntime.values import names
from tests.make.apiserver import Manifest
from tests.make.leader import Outset
from tests.make.manifests import GATED, in_ring, job, kube_node, placed, pod, running
from tests.make.situations import (
    Situation,
)
from tests.make.slurm import Job
from tests.make.slurm_nodes import Node
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
