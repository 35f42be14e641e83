"""One leader, the extender's or the controllers': loop, actuator, book and discovery are the product's, time is virtual.

What the programs bring themselves (`Side`, submit, resize, restore) is as small as can be here: every pod fits, every
submit is as its gang or pod needs it.
"""

import asyncio
import random
from collections.abc import Sequence

from bridge.domain.lifecycle.actions import Resize, Restore, Submit
from bridge.domain.lifecycle.decision import Actor, Fit
from bridge.domain.model.identities import Identity
from bridge.domain.model.placeholder import PlaceholderSpec
from bridge.domain.model.pods import Pod
from bridge.domain.observation.pace import Pace
from bridge.domain.workloads import claims, membership
from bridge.domain.workloads.membership import Membership
from bridge.kube.decode import PODS
from bridge.reconcile.actuator import Actuator
from bridge.reconcile.loop import PodLoop
from bridge.reconcile.placeholder_writes import PlaceholderWrites
from bridge.reconcile.placeholders import Placeholders
from bridge.reconcile.side import Side
from bridge.slurm import jobs
from bridge.slurm.discovery import Discovery
from slurmclient.errors import LostReply
from slurmruntime.kube.cache import Cache
from slurmruntime.leading.workqueue import WorkQueue
from slurmruntime.process.metrics import Metrics
from slurmruntime.values.ids import alone_key
from slurmruntime.values.oddities import UNHEARD
from tests.make.apiserver import ApiServer, Manifest
from tests.make.manifests import CLUSTER
from tests.make.processes import process
from tests.make.sides import KnowsAll
from tests.make.slurm import Job, Slurm
from tests.make.trouble import Trouble
from tests.virtual_time import VirtualClock

PACE = Pace(
    busy_s=1, idle_s=2, shortest_s=0.2, quiet_s=10, first_reasons_per_s=20, reasons_after_s=2
)


def membership_of(pod: Pod) -> Membership:
    return claims.of(pod, ()) if pod.is_gated else membership.placed(pod)


class Leader:
    """From the first list of pods on."""

    def __init__(
        self,
        actor: Actor,
        pods: Sequence[Manifest],
        there: Sequence[Job],
        trouble: Trouble,
        clock: VirtualClock,
        *,
        side: Side | None = None,
    ) -> None:
        """side: what the program would gather; by default every pod fits, and nothing was lost."""
        cache = Cache(PODS)
        metrics = Metrics("controllers")
        self.api = ApiServer(clock, trouble, cache)
        self.slurm = Slurm(trouble, there)
        self.restored: list[str] = []
        """The placeholders for which another was to be submitted."""
        self._clock = clock
        self._discovery = Discovery(self.slurm, CLUSTER, clock=clock.monotonic)  # type: ignore[arg-type]  # all it calls
        self._placeholders = Placeholders(self._discovery, pace=PACE, clock=clock, metrics=metrics)
        shared = process(clock, metrics, UNHEARD)
        actuator = Actuator(
            PlaceholderWrites(
                kube=self.api,  # type: ignore[arg-type]  # all it calls
                slurm=self.slurm,  # type: ignore[arg-type]  # all it calls
                completer=self.slurm,  # type: ignore[arg-type]  # all it calls
                placeholders=self._placeholders,
                submitter=self,
                restore=self._restore,
                on_completed=lambda: None,
            ),
            pods=cache,
            process=shared,
        )
        self.loop = PodLoop(
            side or KnowsAll(actor, membership_of, fit=Fit.FITS).side(),
            pods=cache,
            queue=WorkQueue(rng=random.Random(1)),  # noqa: S311  # jitter
            placeholders=self._placeholders,
            actuator=actuator,
            process=shared,
        )
        for pod in pods:
            self.api.create(pod)

    async def lead(self, *, for_s: float) -> None:
        stop = asyncio.Event()
        async with asyncio.TaskGroup() as group:
            group.create_task(self.loop.run(stop, workers=2))
            await self._clock.sleep(for_s)
            stop.set()

    async def submit(self, pod: Pod, action: Submit) -> None:
        gang, may_still_happen = action.gang, False
        identity = Identity(
            cluster=CLUSTER,
            kind=gang.kind if gang else membership.POD,
            namespace=pod.namespace,
            name=gang.name if gang else pod.name,
            key=gang.key if gang else alone_key(pod.uid),
            pods=tuple(member.uid for member in gang.members) if gang else (pod.uid,),
        )
        spec = PlaceholderSpec(
            identity=identity,
            name=pod.name,
            user="user",
            group="group",
            tasks=gang.size if gang else 1,
            cpus_per_task=1,
        )
        try:
            job_id = await jobs.submit(self.slurm, spec)  # type: ignore[arg-type]  # all it calls
        except LostReply:
            may_still_happen = True
            raise
        else:
            self._discovery.note_submitted(job_id, identity)
        finally:
            self._placeholders.wrote(identity.key, may_still_happen=may_still_happen)

    async def resize(self, pod: Pod, action: Resize) -> bool:
        return False

    async def _restore(self, _pod: Pod, action: Restore) -> None:
        self.restored.append(action.lost)
