"""Whatever the API server may store as a pod is read, told to every subscriber and decided on, and nothing raises.

The API server bounds neither grace periods nor what stands in labels and annotations, so neither are they here: all of
int64, years from 0 to beyond 9999, thousands of digits. Of what cannot be read at all, `Malformed` says so.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.domain import names
from bridge.domain.ids import KubeNode, PodUid, SlurmNode, alone_key
from bridge.domain.lifecycle.decision import Actor, Deadlines, Decision, Facts
from bridge.domain.model.allocation import Seat
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.objects import KubeObject
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.observation.view import Past, View
from bridge.domain.workloads import claims
from bridge.domain.workloads.kinds import kueue, leader_worker_set
from bridge.domain.workloads.membership import Membership
from bridge.kube import decode
from bridge.kube.cache import Cache
from bridge.kube.errors import Malformed
from bridge.leading.workqueue import WorkQueue
from bridge.process.metrics import Metrics
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.set_aside import SetAside, odd_pods
from bridge.slurm.discovery import Snapshot
from tests import virtual_time
from tests.make import lives as build
from tests.make.samples import value
from tests.virtual_time import VirtualClock

Manifest = dict[str, Any]

PACE = Pace(
    busy_s=1, idle_s=1, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)
UID = PodUid("pod-1")

INT64 = st.one_of(
    st.sampled_from([0, 1, -1, 30, 10**9, 10**12, 2**31, 2**62, 2**63 - 1, -(2**63)]),
    st.integers(-(2**63), 2**63 - 1),
)
DIGITS = st.sampled_from(
    ["", "0", "7", "-1", "9" * 20, "9" * 5000, "0" * 5000 + "3", "٣", "x" * 5000]
)
MOMENT = st.builds(
    "{:04}-{:02}-{:02}T{:02}:00:00{}Z".format,
    st.one_of(st.sampled_from([0, 1, 1734, 2026, 2318, 9999, 10000]), st.integers(0, 9999)),
    st.integers(1, 12),
    st.integers(1, 28),
    st.integers(0, 23),
    st.sampled_from(["", ".000001"]),
)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(
        [
            *names.WRITTEN_AT_THE_PIN,
            names.POD_GROUP_SIZE_ANNOTATION,
            names.WHEN_FULL_ANNOTATION,
            names.GANG_ANNOTATION,
            kueue.SIZE,
            leader_worker_set.SIZE,
            "batch.kubernetes.io/job-completion-index",
            f"{names.REQUEST_PREFIX}timelimit",
        ]
    ),
    DIGITS,
)
LABELS = st.dictionaries(
    st.sampled_from(
        [
            names.JOB_ID_LABEL,
            names.POD_GROUP_LABEL,
            kueue.LABEL,
            "leaderworkerset.sigs.k8s.io/name",
            "leaderworkerset.sigs.k8s.io/group-index",
            "leaderworkerset.sigs.k8s.io/worker-index",
        ]
    ),
    DIGITS,
)
ENDED = st.fixed_dictionaries(
    {"exitCode": INT64, "signal": INT64},
    optional={"startedAt": MOMENT, "finishedAt": MOMENT, "reason": st.just("Error")},
)
STATE = st.one_of(
    st.fixed_dictionaries({"running": st.fixed_dictionaries({}, optional={"startedAt": MOMENT})}),
    st.fixed_dictionaries({"waiting": st.just({"reason": "ImagePullBackOff"})}),
    st.fixed_dictionaries({"terminated": ENDED}),
)
STATUS = st.fixed_dictionaries(
    {"phase": st.sampled_from(["Pending", "Running", "Succeeded", "Failed", "Unknown"])},
    optional={
        "startTime": MOMENT,
        "containerStatuses": st.lists(
            st.fixed_dictionaries({"name": st.just("main"), "state": STATE, "restartCount": INT64}),
            max_size=1,
        ),
    },
)
METADATA = st.fixed_dictionaries(
    {
        "name": st.just("odd"),
        "namespace": st.just("team-a"),
        "uid": st.just(UID),
        "creationTimestamp": MOMENT,
        "labels": LABELS,
        "annotations": ANNOTATIONS,
    },
    optional={
        "deletionTimestamp": MOMENT,
        "deletionGracePeriodSeconds": INT64,
        "finalizers": st.just([names.FINALIZER]),
    },
)
SPEC = st.fixed_dictionaries(
    {
        "schedulerName": st.just(names.SCHEDULER_NAME),
        "containers": st.just([{"name": "main", "ports": [{"hostPort": 2**31}]}]),
    },
    optional={
        "nodeName": st.just(build.KUBE_NODE),
        "schedulingGates": st.just([{"name": names.GATE}]),
        "activeDeadlineSeconds": INT64,
        "terminationGracePeriodSeconds": INT64,
    },
)
PODS = st.fixed_dictionaries({"metadata": METADATA, "spec": SPEC, "status": STATUS})

LIMITED = replace(build.job(), time_limit_min=60, ends_at=build.NOW + timedelta(seconds=30))
JOBS = st.sampled_from(
    [
        (),
        (build.waiting(),),
        (build.job(),),
        (LIMITED,),
        (build.ended(),),
        (LIMITED, build.job(number=9)),
    ]
)


class Anybody:
    """A side of the loop whose every pod it knows all about."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor

    def membership(self, pod: Pod) -> Membership:
        return claims.of(pod, ())

    async def resolve(self, pod: Pod) -> Membership:
        return self.membership(pod)

    async def declared(self, member: Membership) -> KubeObject | None:
        return None

    async def admits(self, pod: Pod, job: SlurmJob) -> bool:
        return True

    def past(self, pod: Pod) -> Past:
        return Past.HANDED_OVER

    def gather(
        self,
        pod: Pod,
        view: View,
        *,
        uid: str,
        now: datetime,
        since: datetime,
        seat: Seat | None = None,
        beside: Sequence[Pod] = (),
    ) -> Facts:
        return Facts(pod=pod, view=view, now=now, since=since, kube_node=build.KUBE_NODE)

    def kube_node(self, slurm_node: SlurmNode) -> KubeNode | None:
        return build.KUBE_NODE

    def forget(self, uid: str) -> None:
        pass

    def forget_pod(self, uid: PodUid) -> None:
        pass


class Slurm:
    """Lists whatever it is told to."""

    def __init__(self, clock: VirtualClock, jobs: tuple[SlurmJob, ...]) -> None:
        self._clock, self._jobs, self._sequence = clock, jobs, 0

    async def refresh(self, **_: object) -> Snapshot:
        self._sequence += 1
        return Snapshot(
            sequence=self._sequence,
            began_monotonic=self._clock.monotonic(),
            jobs=MappingProxyType({job.id: job for job in self._jobs}),
            by_uid=MappingProxyType({alone_key(UID): self._jobs} if self._jobs else {}),
            is_repeated=False,
            is_whole=True,
            unreadable=MappingProxyType({}),
            unsure=frozenset(),
        )


class Hands:
    """Do nothing of what is decided."""

    def __init__(self) -> None:
        self.decisions = 0

    async def carry_out(self, pod: Pod, decision: Decision, *, workload: str) -> None:
        self.decisions += 1


def read(versions: Sequence[Manifest]) -> list[Pod]:
    found: list[Pod] = []
    for number, version in enumerate(versions):
        stored = {**version, "metadata": {**version["metadata"], "resourceVersion": str(number)}}
        try:
            found.append(decode.pod(json.dumps(stored).encode()))
        except Malformed:  # set aside: it stays as it was
            continue
    return found


@settings(max_examples=400, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(st.lists(PODS, min_size=1, max_size=3), JOBS, st.sampled_from(list(Actor)))
def test_a_pod_of_any_numbers_is_decided_on(
    versions: list[Manifest], jobs: tuple[SlurmJob, ...], actor: Actor
) -> None:
    seen = read(versions)

    async def main(clock: VirtualClock) -> None:
        metrics, stop, hands = Metrics("test"), asyncio.Event(), Hands()
        aside = SetAside(metrics, clock)
        pods = Cache(decode.PODS, aside)
        pods.index(lambda pod: [pod.kube_node or pod.assigned_node or "", pod.placed_by])
        pods.subscribe(odd_pods(aside, actor))
        slurm: Any = Slurm(clock, jobs)
        acting: Any = hands
        loop = PodLoop(
            Anybody(actor),
            pods=pods,
            queue=WorkQueue(rng=random.Random(1)),  # noqa: S311  # jitter
            placeholders=Placeholders(slurm, pace=PACE, clock=clock, metrics=Metrics("other")),
            actuator=acting,
            policy=Deadlines(),
            clock=clock,
            metrics=metrics,
            set_aside=aside,
        )
        async with asyncio.TaskGroup() as group:
            group.create_task(loop.run(stop, workers=2))
            for pod in seen:
                pods.put(pod)
                await clock.sleep(3)
            pods.remove(UID)
            await clock.sleep(1)
            stop.set()
        for kind in ("pod", "workload"):
            assert (
                not value(metrics, "slurm_bridge_set_aside_total", kind=kind, reason="crashed") > 0
            )
        assert 0 == len(aside)
        assert hands.decisions or not any(_is_whose(pod, actor) for pod in seen)

    virtual_time.run(main)


def _is_whose(pod: Pod, actor: Actor) -> bool:
    """It is sure to be decided on: it belongs to this side and has a finalizer."""
    return pod.has_our_finalizer and pod.is_gated == (actor is Actor.EXTENDER)
