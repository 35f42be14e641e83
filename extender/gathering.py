"""Gathers what the effective request of a workload depends on: owners, namespace labels, Slurm's nodes.

`bridge.domain.request.effective` defines whose owners matter, and decides on everything at once.
"""

import contextlib
from collections.abc import Iterable, Mapping, Sequence

import structlog

from bridge.domain.model.identities import Identity
from bridge.domain.model.pods import Pod
from bridge.domain.model.volumes import ClaimFacts, Claims
from bridge.domain.request import attribution
from bridge.domain.request.attribution import Provenance
from bridge.domain.request.effective import RequestFacts, deciding_members, former
from bridge.domain.request.rules import Policy
from bridge.domain.workloads.workload import Workload
from bridge.kube.volumes import Volumes
from bridge.settings.policy_file import PolicyFile
from extender.claims.asking import ClaimAsker
from extender.memory import Memory
from extender.nodes import BridgedNodes
from extender.owners import Owners
from slurmruntime.kube import errors, objects
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import Clock
from slurmruntime.slurm import inspection
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.faults import Fault
from slurmruntime.values.ids import SlurmNode

_log = structlog.get_logger(__name__)

_CACHED_S = 30.0
_OPERATORS_CACHED_S = 600.0


class PolicySource:
    """Where the rules for requests come from, and the user that no rule may result in."""

    def __init__(self, policy_file: PolicyFile, slurm: SlurmClient, clock: Clock) -> None:
        self._file = policy_file
        self._slurm = slurm
        self._clock = clock
        self._slurm_user: tuple[float, frozenset[str]] | None = None

    @property
    def current(self) -> Policy:
        """The policy that is in force."""
        return self._file.current

    async def operators(self) -> frozenset[str]:
        """Return name and uid of SlurmUser; cached, because slurmctld reads them only at startup."""
        now = self._clock.monotonic()
        if self._slurm_user is None or now - self._slurm_user[0] > _OPERATORS_CACHED_S:
            self._slurm_user = (now, await inspection.slurm_user(self._slurm))
        return self._slurm_user[1]


class Gatherer:
    """Gathers the facts of one request at a time, under one policy."""

    def __init__(
        self,
        kube: KubeClient,
        *,
        policy: PolicySource,
        owners: Owners,
        bridged: BridgedNodes,
        devices: ClaimAsker | None = None,
        clock: Clock,
    ) -> None:
        """devices: reads resource claims; None without device profiles."""
        self._kube = kube
        self._policy = policy
        self._owners = owners
        self._bridged = bridged
        self._volumes = Volumes(kube)
        self._devices = devices
        self._clock = clock
        self._labels = Memory[str, Mapping[str, str]](_CACHED_S)

    async def request(
        self,
        members: tuple[Pod, ...],
        *,
        gang: Workload | None,
        submitted: Iterable[Identity],
        avoid: tuple[SlurmNode, ...],
    ) -> RequestFacts:
        """Gather what `effective` needs to decide on a workload.

        Args:
            members: its pods, at least one.
            gang: the workload; None for a single pod.
            submitted: its earlier submits, latest last.
            avoid: nodes that Kubernetes could not use for it recently.

        Raises:
            KubeError: an owner, the namespace or a volume could not be read.
            SlurmError: Slurm's nodes could not be read.
        """
        policy = self._policy.current
        former_request = former(submitted, members)
        unclaimable: tuple[Fault, ...] = ()
        if self._devices is not None:
            members, gang, unclaimable = await self._devices.add_devices(members, gang)
        attributed = deciding_members(members, policy, was_submitted=former_request is not None)
        return RequestFacts(
            members=members,
            gang=gang,
            former=former_request,
            provenance=await self._provenance(members[0].namespace, attributed, policy),
            policy=policy,
            pool=await self._bridged.pool(),
            avoid=avoid,
            claims={pod.uid: await self._claims_of(pod) for pod in members if pod.claims},
            unclaimable=unclaimable,
        )

    async def _claims_of(self, pod: Pod) -> Claims:
        """Return the facts of each volume claim; claims that we may not read are left out."""
        facts: list[ClaimFacts] = []
        for name in pod.claims:
            try:
                facts.append(await self._volumes.facts(pod.namespace, name))
            except errors.Forbidden as error:
                _log.warning("volume.unreadable", claim=name, error=str(error))
        return facts

    async def provenance(self, pod: Pod) -> tuple[Provenance, Policy]:
        """Gather what determines the user and the account of a pod's job.

        Raises:
            KubeError: an owner or the namespace could not be read.
            SlurmError: SlurmUser could not be read.
        """
        policy = self._policy.current
        attributed = [pod] if policy.acts_for_others(attribution.maker(pod)) else []
        return await self._provenance(pod.namespace, attributed, policy), policy

    async def _provenance(self, namespace: str, pods: Sequence[Pod], policy: Policy) -> Provenance:
        return Provenance(
            owners={pod.uid: await self._owners.chain(pod) for pod in pods},
            groups={pod.uid: await self._owners.groups(pod) for pod in pods},
            namespace_labels=await self._namespace_labels(namespace)
            if policy.asks_for_labels
            else {},
            operators=await self._policy.operators(),
        )

    async def _namespace_labels(self, namespace: str) -> Mapping[str, str]:
        now = self._clock.monotonic()
        if self._labels.has(namespace, now):
            return self._labels.get(namespace)
        labels: Mapping[str, str] = {}
        with contextlib.suppress(errors.NotFound):
            labels = (await objects.get_namespace(self._kube, namespace)).labels
        self._labels.put(namespace, labels, now)
        return labels
