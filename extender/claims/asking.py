"""Reads what claims of pods ask for, before each submit of a pod that has some.

Also creates missing templates that admission has named for devices of a class.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from bridge.domain.model.claims import asking, by_class, giving
from bridge.domain.model.claims import profiles as device_profiles
from bridge.domain.model.claims.asking import Asking, ClaimInHand
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import ClaimSpec, PodClaim, ResourceClaim
from bridge.domain.model.pods import Pod
from bridge.domain.workloads.workload import Workload
from bridge.kube.claims.templates import ClaimTemplates
from bridge.reconcile.actuator import NotGiven
from extender.claims.known import KnownClaims
from extender.memory import Memory
from slurmclient.watching.in_turn import in_turn
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault

_AT_A_TIME = 16
"""Concurrent reads for one gang."""

_REMEMBERED_S = 10.0
"""How long a user's template is cached. A template is immutable, but it can be deleted and recreated: if a job was
submitted for the old one, the claim is given nothing, and the job is submitted again."""
_MOST_REMEMBERED = 1024

_MADE_WITHIN = timedelta(minutes=1)
"""Kubernetes creates a claim from its template when the pod is created, while the job is submitted. A pod
whose claim is still missing after this time gets no job: its devices would be idle, again and again."""

Claimed = tuple[tuple[Pod, ...], Workload | None, tuple[Fault, ...]]
"""The members and their gang with the devices that they claim, and what is wrong."""


class Templates:
    """Reads templates, and creates those that admission has named and that do not exist yet."""

    def __init__(
        self, known: KnownClaims, templates: ClaimTemplates, profiles: Profiles, clock: Clock
    ) -> None:
        self._known = known
        self._templates = templates
        self._profiles = profiles
        self._clock = clock
        self._remembered = Memory[tuple[str, str], ClaimSpec](_REMEMBERED_S, most=_MOST_REMEMBERED)
        """Users' templates by namespace and name."""

    async def spec(self, key: tuple[str, str]) -> ClaimSpec | None:
        """Return what a template, given by namespace and name, asks for; None if there is none.

        The answer may be some seconds old. Raises KubeError if a template or class could not be
        read or written.
        """
        now = self._clock.monotonic()
        if self._remembered.has(key, now):
            return self._remembered.get(key)
        spec = await self.now(key)
        # Not those that admission has named: if one is deleted, it must be recreated for the next pod.
        if spec is not None and not spec.unreadable and by_class.spec(key[1]) is None:
            self._remembered.put(key, spec, now)
        return spec

    async def now(self, key: tuple[str, str]) -> ClaimSpec | None:
        """Return what a template asks for now; None if it does not exist.

        Raises:
            KubeError: a template or class could not be read or written.
        """
        try:
            return await self._read_or_create(*key)
        except errors.NotFound:
            return None
        # A quota or a policy may prevent its creation; the message is shown on the pod.
        except (errors.Forbidden, errors.Rejected, errors.Malformed) as error:
            return ClaimSpec(unreadable=error.message)

    async def _read_or_create(self, namespace: str, name: str) -> ClaimSpec:
        try:
            return await self._templates.get(namespace, name)
        except errors.NotFound:
            if (missing := by_class.spec(name)) is None:
                raise
        # Users choose the names in their pods' claims, and templates are never deleted: create
        # them only for what Slurm can give.
        if any(asking.of_spec(missing)) or not await self._have_profiles(missing):
            return missing
        return await self._templates.create(namespace, name, missing)

    async def _have_profiles(self, spec: ClaimSpec) -> bool:
        for request in spec.requests:
            device_class = await self._known.device_class(request.device_class)
            if (
                device_class is None
                or device_profiles.of_class(device_class, self._profiles) is None
            ):
                return False
        return True

    async def recreate(self, pod: Pod) -> None:
        """Recreate templates that were deleted before Kubernetes created the pod's claims.

        They existed when the job was submitted. Without them, the claims would never be created.

        Raises:
            NotGiven: a template does not exist, or cannot be read or created.
            KubeError: decide again later.
        """
        missing = {entry.template for entry in pod.resource_claims if not entry.claim}
        for name in sorted(missing - {""}):
            spec = await self.now((pod.namespace, name))
            if spec is None:
                raise NotGiven(f"there is no template {name} to create a claim of the pod from")
            if spec.unreadable:
                raise NotGiven(f"template {name}: {spec.unreadable}")


class ClaimAsker:
    """Adds the devices of a pod's claims to its request."""

    def __init__(
        self,
        known: KnownClaims,
        templates: Templates,
        *,
        pods: Cache[Pod],
        profiles: Profiles,
        clock: Clock,
    ) -> None:
        self._known = known
        self._templates = templates
        self._users = pods.index(_claim_keys)
        self._profiles = profiles
        self._clock = clock

    async def add_devices(self, members: tuple[Pod, ...], gang: Workload | None) -> Claimed:
        """Return the pods as if the devices of their claims were extended resources.

        Devices from an earlier job are taken back first, because Slurm may have given them to others by now.
        Missing templates that admission has named for devices of a class are created if Slurm has such devices.

        Raises:
            KubeError: a claim, template or class could not be read or written, or was changed concurrently.
        """
        if not any(member.resource_claims for member in members):
            return members, gang, ()
        requests = await self._asked(members)
        counted, faults = asking.of_all(members, requests, self._profiles)
        if faults:
            return members, gang, faults
        return counted, replace(gang, members=counted) if gang else None, ()

    async def _asked(self, members: Sequence[Pod]) -> list[Asking]:
        """Read the claims of all members, then each template and each class once."""
        claims_of = await in_turn(
            range(len(members)), lambda number: self._in_hand(members[number]), at_a_time=_AT_A_TIME
        )
        wanted = {
            (member.namespace, claim.entry.template)
            for number, member in enumerate(members)
            for claim in claims_of[number]
            if claim.spec is None and claim.entry.template
        }
        templates = await in_turn(sorted(wanted), self._templates.spec, at_a_time=_AT_A_TIME)
        complete = [
            tuple(
                replace(claim, spec=templates.get((member.namespace, claim.entry.template)))
                if claim.spec is None
                else claim
                for claim in claims_of[number]
            )
            for number, member in enumerate(members)
        ]
        specs = (claim.spec for pod_claims in complete for claim in pod_claims)
        classes = await self._known.classes_of(specs)
        return [Asking(claims=pod_claims, classes=classes) for pod_claims in complete]

    async def _in_hand(self, pod: Pod) -> list[ClaimInHand]:
        """Read a pod's claims; a claim that does not exist yet has no spec."""
        return [
            await self._one_in_hand(pod, index, entry)
            for index, entry in enumerate(pod.resource_claims)
        ]

    async def _one_in_hand(self, pod: Pod, index: int, entry: PodClaim) -> ClaimInHand:
        claim = await self._claim(pod, entry)
        if claim is None:
            age = pod.waiting_time(self._clock.now())
            is_overdue = bool(entry.template) and (bool(entry.claim) or age > _MADE_WITHIN)
            return ClaimInHand(index=index, entry=entry, spec=None, is_overdue=is_overdue)
        if giving.may_take_back(claim, pod.uid):
            await self._known.api.take_back(claim)
        users = self._users.get(f"{pod.namespace}/{entry.claim}")
        others = [user.name for user in users if user.uid != pod.uid]
        other_users = set(claim.reserved_for) - {pod.uid, *(user.uid for user in users)}
        return ClaimInHand(
            index=index, entry=entry, spec=claim.spec, others=(*others, *sorted(other_users))
        )

    async def _claim(self, pod: Pod, entry: PodClaim) -> ResourceClaim | None:
        if not entry.claim:
            return None
        try:
            return await self._known.get(pod.namespace, entry.claim)
        except errors.NotFound:
            return None
        except errors.Malformed as error:  # retrying would not help; the pod shows the message
            spec = ClaimSpec(unreadable=error.message)
            return ResourceClaim(uid="", namespace=pod.namespace, name=entry.claim, spec=spec)


def _claim_keys(pod: Pod) -> Sequence[str]:
    """Return the claims that a pod uses; none once it has ended."""
    if pod.is_terminal:
        return ()
    return [f"{pod.namespace}/{entry.claim}" for entry in pod.resource_claims if entry.claim]
