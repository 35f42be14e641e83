"""What the owners of a pod ask of Slurm: annotations of its controllers, the nearest one winning.

Read once per owner and remembered by its uid; an edit of a live owner is seen when the memory of it is over.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping

import structlog

from bridge.domain.objects import KubeObject
from bridge.domain.pods import Owner, Pod
from bridge.kube import errors
from bridge.kube.objects import Objects
from bridge.runtime.clock import Clock

_log = structlog.get_logger(__name__)

_DEEPEST = 5
"""Pod → ReplicaSet → Deployment, pod → Job → JobSet → …: deeper chains are somebody's loop."""

_REMEMBERED = 4096
_REMEMBERED_S = 30.0


class Owners:
    """The chain of controllers above a pod."""

    def __init__(self, objects: Objects, clock: Clock) -> None:
        self._objects = objects
        self._clock = clock
        self._known: OrderedDict[str, tuple[float, KubeObject | None]] = OrderedDict()

    async def annotations(self, pod: Pod) -> Mapping[str, str]:
        """Merge the annotations of every controller above the pod, the nearest winning; the pod's own are left out.

        A controller that is gone, or that we may not read, ends the chain.

        Raises:
            KubeError: the API server could not be asked.
        """
        merged: dict[str, str] = {}
        owner = pod.owner
        for _ in range(_DEEPEST):
            found = await self._read(owner, pod.namespace) if owner else None
            if found is None:
                break
            merged = {**found.annotations, **merged}
            owner = found.owner
        return merged

    async def creator(
        self, pod: Pod, annotation: str, *, is_controller: Callable[[str], bool]
    ) -> str:
        """Find the recorded creator of the nearest owner that no controller has made; "" where it is not recorded.

        Not simply the root's: anybody can write somebody else's object into the owners of their own.

        Raises:
            KubeError: the API server could not be asked.
        """
        owner = pod.owner
        for _ in range(_DEEPEST):
            found = await self._read(owner, pod.namespace) if owner else None
            who = found.annotations.get(annotation, "") if found else ""
            if found is None or not is_controller(who):
                return who
            owner = found.owner
        return ""

    async def _read(self, owner: Owner, namespace: str) -> KubeObject | None:
        now = self._clock.monotonic()
        if owner.uid in self._known and now - self._known[owner.uid][0] < _REMEMBERED_S:
            return self._known[owner.uid][1]
        try:
            found = await self._objects.get(owner.api_version, owner.kind, namespace, owner.name)
        except (errors.NotFound, errors.Forbidden) as error:
            _log.debug("owner.unread", kind=owner.kind, owner=owner.name, error=str(error))
            found = None
        if found is not None and found.uid != owner.uid:
            found = None  # re-created under the same name: not the one that made this pod
        self._known[owner.uid] = (now, found)
        self._known.move_to_end(owner.uid)
        while len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found
