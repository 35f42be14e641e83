"""Templates of claims that pods name, and those that admission has named for devices of a class."""

from collections.abc import Sequence

import structlog

from bridge.domain.lifecycle.actions import Assign
from bridge.domain.model.claims import asking, by_class
from bridge.domain.model.claims import profiles as device_profiles
from bridge.domain.model.claims.profiles import Profiles
from bridge.domain.model.claims.values import ClaimSpec, PodClaim
from bridge.domain.model.jobs import SlurmJob
from bridge.domain.model.pods import Pod
from bridge.kube import errors
from bridge.kube.claims.resource_claims import ResourceClaims
from bridge.kube.claims.templates import ClaimTemplates
from bridge.reconcile.actuator import DeviceGiver, NotGiven
from extender.giving import device_class

_log = structlog.get_logger(__name__)


class Templates:
    """Reads templates, and creates those that admission has named and nobody has made yet."""

    def __init__(
        self, claims: ResourceClaims, templates: ClaimTemplates, profiles: Profiles
    ) -> None:
        self._claims = claims
        self._templates = templates
        self._profiles = profiles

    async def spec(self, named: tuple[str, str]) -> ClaimSpec | None:
        """Return what a template asks for, by its namespace and its name; None if there is none.

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
            found = await device_class(self._claims, request.device_class)
            if found is None or device_profiles.of_class(found, self._profiles) is None:
                return False
        return True


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
            await self._make_again(pod, [each for each in pod.resource_claims if not each.claim])
            raise

    async def take_back(self, pod: Pod) -> None:
        """Take back the devices that a placeholder which is over gave to a pod.

        Raises:
            KubeError: try again later.
        """
        await self._devices.take_back(pod)

    async def _make_again(self, pod: Pod, unmade: Sequence[PodClaim]) -> None:
        for name in sorted({each.template for each in unmade} - {""}):
            found = await self._templates.spec((pod.namespace, name))
            if found is None:
                raise NotGiven(f"there is no template {name} to make a claim of the pod from")
            if found.unreadable:
                raise NotGiven(f"template {name}: {found.unreadable}")
