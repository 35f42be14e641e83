"""Read what the effective request of a workload depends on.

Owners, namespace labels, Slurm's nodes.

`bridge.domain.request.effective` defines whose owners matter, and decides on everything at once.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from bridge.domain.model.identities import Identity
from bridge.domain.model.pods import Pod
from bridge.domain.request import attribution
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.effective import Gathered, former, with_a_say
from bridge.domain.request.rules import Policy
from bridge.domain.workloads.workload import Workload
from extender.claims.asking import ClaimAsker
from extender.nodes import Bridged
from extender.owners import Owners
from extender.volumes import ClaimReader
from slurmruntime.kube import errors, objects
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import SlurmNode

_REMEMBERED_S = 30.0
_REMEMBERED = 4096
_OPERATOR_REMEMBERED_S = 600.0


class Gatherer:
    """Reads each thing once per request, under one policy."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        policy: Callable[[], Policy],
        owners: Owners,
        bridged: Bridged,
        claims: ClaimReader,
        devices: ClaimAsker | None = None,
        slurm_user: Callable[[], Awaitable[frozenset[str]]],
        clock: Clock,
    ) -> None:
        """devices: reads resource claims; None without device profiles.

        slurm_user: reads the name and the uid of SlurmUser, whom no rule may result in.
        """
        self._kube = kube
        self._policy = policy
        self._owners = owners
        self._bridged = bridged
        self._claims = claims
        self._devices = devices
        self._clock = clock
        self._read_slurm_user = slurm_user
        self._slurm_user: tuple[float, frozenset[str]] | None = None
        self._labels: dict[str, tuple[float, Mapping[str, str]]] = {}

    async def request(
        self,
        members: tuple[Pod, ...],
        *,
        gang: Workload | None,
        submitted: Iterable[Identity],
        avoid: tuple[SlurmNode, ...],
    ) -> Gathered:
        """Gather what `effective` needs to decide on a workload.

        Args:
            members: its pods, at least one.
            gang: the workload; None for a single pod.
            submitted: its earlier submits, the latest last.
            avoid: nodes that Kubernetes recently could not use for it.

        Raises:
            KubeError: an owner, the namespace or a volume could not be read.
            SlurmError: Slurm's nodes could not be read.
        """
        policy = self._policy()
        asked = former(submitted, members)
        unclaimable: tuple[Fault, ...] = ()
        if self._devices is not None:
            members, gang, unclaimable = await self._devices.counted(members, gang)
        read = with_a_say(members, policy, was_submitted=asked is not None)
        return Gathered(
            members=members,
            gang=gang,
            former=asked,
            provenance=await self._provenance(members[0].namespace, read, policy),
            policy=policy,
            pool=await self._bridged.pool(),
            avoid=avoid,
            claims={pod.uid: await self._claims.claims(pod) for pod in members if pod.claims},
            unclaimable=unclaimable,
        )

    async def standing(self, pod: Pod) -> tuple[Provenance, Policy]:
        """Gather what decides which user and account a pod's job would have.

        Raises:
            KubeError: an owner or the namespace could not be read.
            SlurmError: who SlurmUser is could not be read.
        """
        policy = self._policy()
        read = [pod] if policy.acts_for_others(attribution.maker(pod)) else []
        return await self._provenance(pod.namespace, read, policy), policy

    async def _provenance(self, namespace: str, pods: Sequence[Pod], policy: Policy) -> Provenance:
        return Provenance(
            owners={pod.uid: await self._owners.chain(pod) for pod in pods},
            groups={pod.uid: await self._owners.groups(pod) for pod in pods},
            namespace_labels=await self._labels_of(namespace) if policy.asks_for_labels else {},
            operators=await self._operators(),
        )

    async def _operators(self) -> frozenset[str]:
        """Return the name and the uid of SlurmUser; slurmctld reads them when it starts."""
        now = self._clock.monotonic()
        if self._slurm_user is None or now - self._slurm_user[0] > _OPERATOR_REMEMBERED_S:
            self._slurm_user = (now, await self._read_slurm_user())
        return self._slurm_user[1]

    async def _labels_of(self, namespace: str) -> Mapping[str, str]:
        now = self._clock.monotonic()
        read_at, labels = self._labels.get(namespace, (-_REMEMBERED_S, {}))
        if now - read_at < _REMEMBERED_S:
            return labels
        try:
            labels = (await objects.get_namespace(self._kube, namespace)).labels
        except errors.NotFound:
            labels = {}
        while len(self._labels) >= _REMEMBERED:
            self._labels.pop(next(iter(self._labels)))
        self._labels[namespace] = (now, labels)
        return labels
