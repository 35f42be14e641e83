"""Whatever the API server may store as a pod is read, told to every subscriber and decided on, and nothing raises.

The API server bounds neither grace periods nor what stands in labels and annotations, so neither are they here: all of
int64, years from 0 to beyond 9999, thousands of digits. Of what cannot be read at all, `Malformed` says so.
"""

import asyncio
import json
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bridge.domain.lifecycle.decision import Actor, Decision
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.workloads import claims
from bridge.domain.workloads.kinds import kueue, leader_worker_set
from bridge.kube import decode
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.set_aside import SetAside, odd_pods
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.errors import Malformed
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from slurmruntime.values.ids import PodUid
from tests import virtual_time
from tests.make import lives as build
from tests.make.processes import process
from tests.make.samples import value
from tests.make.sides import KnowsAll, Lists
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


class Hands:
    """Do nothing of what is decided."""

    async def carry_out(self, pod: Pod, decision: Decision, *, workload: str) -> None:
        pass

    async def take_back(self, pod: Pod) -> None:
        pass


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
        metrics, stop = Metrics("test"), asyncio.Event()
        side = KnowsAll(actor, lambda pod: claims.of(pod, ()))
        aside = SetAside(metrics, clock)
        pods = Cache(decode.PODS, aside)
        pods.index(lambda pod: [pod.kube_node or pod.assigned_node or "", pod.placed_by])
        pods.subscribe(odd_pods(aside, {actor}))
        slurm: Any = Lists(clock, UID, jobs)
        acting: Any = Hands()
        loop = PodLoop(
            side.side(),
            pods=pods,
            queue=WorkQueue(rng=random.Random(1)),  # noqa: S311  # jitter
            placeholders=Placeholders(slurm, pace=PACE, clock=clock, metrics=Metrics("other")),
            actuator=acting,
            process=process(clock, metrics, aside),
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
        assert side.gathered or not any(_is_whose(pod, actor) for pod in seen)

    virtual_time.run(main)


def _is_whose(pod: Pod, actor: Actor) -> bool:
    """It is sure to be decided on: it belongs to this side and has a finalizer."""
    return pod.has_our_finalizer and pod.is_gated == (actor is Actor.EXTENDER)
