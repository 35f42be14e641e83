"""What the resource claims of pods ask for, read before each submit of a pod that has some.

The templates that admission has named for devices of a class are created here, where nobody has yet.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import timedelta

from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import asking, by_class, giving
from bridge.domain.model.claims import profiles as device_profiles
from bridge.domain.model.claims.asking import Asking, ClaimInHand
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import ClaimSpec, PodClaim, ResourceClaim
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.domain.workloads.workload import Workload
from bridge.kube.claims.resource_claims import ResourceClaims
from bridge.kube.claims.templates import ClaimTemplates
from bridge.reconcile.actuator import DeviceGiver, NotGiven
from extender.claims.known import KnownClaims
from slurmclient.watching.in_turn import in_turn
from slurmruntime.kube import errors
from slurmruntime.kube.cache import Cache
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault

_AT_A_TIME = 16
"""Reads for one gang at once."""

_REMEMBERED_S = 10.0
"""How long a user's template is not read again. Nobody can change one, but it can be deleted and made anew:
if a job was submitted by the old one, the claim is given nothing, and the job is submitted again."""
_MOST_REMEMBERED = 1024

_MADE_WITHIN = timedelta(minutes=1)
"""Kubernetes makes a claim from its template when the pod is created, while the job is submitted. A pod
whose claim is not there after so long gets no job: its devices would lie idle, time and again."""

Claimed = tuple[tuple[Pod, ...], Workload | None, tuple[Fault, ...]]
"""The members and their gang with the devices that they claim, or what is wrong."""


class Templates:
    """Reads templates, and creates those that admission has named and nobody has made yet."""

    def __init__(
        self, known: KnownClaims, templates: ClaimTemplates, profiles: Profiles, clock: Clock
    ) -> None:
        self._known = known
        self._templates = templates
        self._profiles = profiles
        self._clock = clock
        self._remembered: dict[tuple[str, str], tuple[float, ClaimSpec]] = {}
        """Users' templates by namespace and name, and until when; those read first come first."""

    async def spec(self, named: tuple[str, str]) -> ClaimSpec | None:
        """Return what a template asks for, by its namespace and its name, or asked for a moment ago.

        Raises:
            KubeError: a template or class could not be read or written.
        """
        now = self._clock.monotonic()
        until, found = self._remembered.get(named, (now, None))
        if found is not None and now < until:
            return found
        self._remembered.pop(named, None)
        found = await self.now(named)
        # One that admission has named is made again for the next pod if somebody deletes it.
        if found is not None and not found.unreadable and by_class.spec(named[1]) is None:
            while len(self._remembered) >= _MOST_REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[named] = now + _REMEMBERED_S, found
        return found

    async def now(self, named: tuple[str, str]) -> ClaimSpec | None:
        """Return what a template asks for now; None if there is none.

        Raises:
            KubeError: a template or class could not be read or written.
        """
        try:
            return await self._read_or_create(*named)
        except errors.NotFound:
            return None
        # A quota or a policy may keep it from being created: the pod is told.
        except (errors.Forbidden, errors.Rejected, errors.Malformed) as error:
            return ClaimSpec(unreadable=error.message)

    async def _read_or_create(self, namespace: str, name: str) -> ClaimSpec:
        try:
            return await self._templates.get(namespace, name)
        except errors.NotFound:
            if (missing := by_class.spec(name)) is None:
                raise
        # Users choose the names in their pods' claims, and nobody deletes templates: there is one
        # only for what Slurm can give.
        if any(asking.of_spec(missing)) or not await self._have_profiles(missing):
            return missing
        return await self._templates.create(namespace, name, missing)

    async def _have_profiles(self, spec: ClaimSpec) -> bool:
        for request in spec.requests:
            found = await self._known.device_class(request.device_class)
            if found is None or device_profiles.of_class(found, self._profiles) is None:
                return False
        return True


class ClaimAsker:
    """Adds the devices of a pod's claims to what it asks for."""

    def __init__(
        self,
        claims: ResourceClaims,
        known: KnownClaims,
        templates: Templates,
        *,
        pods: Cache[Pod],
        profiles: Profiles,
        clock: Clock,
    ) -> None:
        self._claims = claims
        self._known = known
        self._templates = templates
        self._users = pods.index(_named)
        self._profiles = profiles
        self._clock = clock

    async def counted(self, members: tuple[Pod, ...], gang: Workload | None) -> Claimed:
        """Return the pods as if devices of claims were extended resources.

        What an earlier job gave them is taken back first: others may have it by now. Templates that
        admission has named for devices of a class are created where they are missing and Slurm has some.

        Raises:
            KubeError: a claim, template or class could not be read or written, or was changed meanwhile.
        """
        if not any(member.resource_claims for member in members):
            return members, gang, ()
        asked = await self._asked(members)
        counted, faults = asking.of_all(members, asked, self._profiles)
        if faults:
            return members, gang, faults
        return counted, replace(gang, members=counted) if gang else None, ()

    async def _asked(self, members: Sequence[Pod]) -> list[Asking]:
        """Read the claims of all members, then each template and each class once."""
        hands = await in_turn(
            range(len(members)), lambda number: self._in_hand(members[number]), at_a_time=_AT_A_TIME
        )
        wanted = {
            (member.namespace, each.entry.template)
            for number, member in enumerate(members)
            for each in hands[number]
            if each.spec is None and each.entry.template
        }
        templates = await in_turn(sorted(wanted), self._templates.spec, at_a_time=_AT_A_TIME)
        claims = [
            tuple(
                replace(each, spec=templates.get((member.namespace, each.entry.template)))
                if each.spec is None
                else each
                for each in hands[number]
            )
            for number, member in enumerate(members)
        ]
        specs = (each.spec for of_pod in claims for each in of_pod)
        classes = await self._known.classes_of(specs)
        return [Asking(claims=claim, classes=classes) for claim in claims]

    async def _in_hand(self, pod: Pod) -> list[ClaimInHand]:
        """Read a pod's claims; one that does not exist yet has no spec."""
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
            await self._claims.take_back(claim)
        users = self._users.get(f"{pod.namespace}/{entry.claim}")
        others = [user.name for user in users if user.uid != pod.uid]
        strangers = set(claim.reserved_for) - {pod.uid, *(user.uid for user in users)}
        return ClaimInHand(
            index=index, entry=entry, spec=claim.spec, others=(*others, *sorted(strangers))
        )

    async def _claim(self, pod: Pod, entry: PodClaim) -> ResourceClaim | None:
        if not entry.claim:
            return None
        try:
            return await self._known.whole(pod.namespace, entry.claim)
        except errors.NotFound:
            return None
        except errors.Malformed as error:  # trying again would not help: the pod is told
            return _unreadable(pod.namespace, entry.claim, error)


class WithTemplates:
    """Gives devices, and makes a template again that is gone before Kubernetes has made its claim.

    The template was there when the job was submitted. Without it there will never be a claim.
    """

    def __init__(self, devices: DeviceGiver, templates: Templates) -> None:
        self._devices = devices
        self._templates = templates

    async def give(self, pod: Pod, action: Assign, job: SlurmJob | None) -> None:
        """Give a pod's claims their devices.

        Raises:
            NotGiven: it is not possible now.
            KubeError, SlurmError: decide again later.
        """
        try:
            await self._devices.give(pod, action, job)
        except NotGiven:
            await self._make_again(
                pod,
                [
                    resource_claim
                    for resource_claim in pod.resource_claims
                    if not resource_claim.claim
                ],
            )
            raise

    async def prepare(self, pods: Iterable[Pod]) -> None:
        """Do ahead what can be done before a placeholder has started."""
        await self._devices.prepare(pods)

    async def take_back(self, pod: Pod) -> None:
        """Take back the devices that a placeholder which is over gave to a pod.

        Raises:
            KubeError: try again later.
        """
        await self._devices.take_back(pod)

    async def _make_again(self, pod: Pod, unmade: Sequence[PodClaim]) -> None:
        for name in sorted({each.template for each in unmade} - {""}):
            found = await self._templates.now((pod.namespace, name))
            if found is None:
                raise NotGiven(f"there is no template {name} to make a claim of the pod from")
            if found.unreadable:
                raise NotGiven(f"template {name}: {found.unreadable}")


def _unreadable(namespace: str, name: str, error: errors.Malformed) -> ResourceClaim:
    return ResourceClaim(
        uid="", namespace=namespace, name=name, spec=ClaimSpec(unreadable=error.message)
    )


def _named(pod: Pod) -> Sequence[str]:
    """Return the claims that a pod uses until it has ended."""
    if pod.is_terminal:
        return ()
    return [
        f"{pod.namespace}/{resource_claim.claim}"
        for resource_claim in pod.resource_claims
        if resource_claim.claim
    ]
