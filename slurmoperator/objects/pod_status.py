"""The status of a pod as kubelet and scheduler report it, and why the pod is not ready."""

from collections.abc import Iterator
from typing import Final

from slurmruntime.crd.fields import Moment, ObjectStruct

_EXPECTED: Final = frozenset({"ContainerCreating", "PodInitializing"})


class PodReason(ObjectStruct, frozen=True):
    """Why a container is waiting, or how it ended."""

    reason: str = ""
    message: str = ""


class ContainerState(ObjectStruct, frozen=True):
    """The state of a container; at most one field is set."""

    running: dict[str, str] | None = None
    waiting: PodReason | None = None
    terminated: PodReason | None = None


class ContainerStatus(ObjectStruct, frozen=True):
    """The status of one container."""

    name: str = ""
    image: str = ""
    """The image it was started from, by the name in its pod."""
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    restart_count: int = 0
    ready: bool = False

    @property
    def termination_message(self) -> str:
        """The message of its last termination; "" if it has not ended."""
        ended = self.state.terminated or self.last_state.terminated
        return ended.message if ended else ""

    @property
    def is_running(self) -> bool:
        """Whether the container is running; False while its state is unknown."""
        return self.state.running is not None

    @property
    def waiting_reason(self) -> str:
        """Why the container is waiting; "" if it is not."""
        return self.state.waiting.reason if self.state.waiting else ""


class PodCondition(ObjectStruct, frozen=True):
    """A condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    last_transition_time: Moment | None = None


class PodStatus(ObjectStruct, frozen=True):
    """A pod's status."""

    phase: str = ""
    conditions: tuple[PodCondition, ...] | None = None
    init_container_statuses: tuple[ContainerStatus, ...] | None = None
    container_statuses: tuple[ContainerStatus, ...] | None = None

    @property
    def containers(self) -> tuple[ContainerStatus, ...]:
        """All containers, in the order in which they start."""
        return (*(self.init_container_statuses or ()), *(self.container_statuses or ()))

    def is_running(self, container: str) -> bool:
        """Check whether the container of this name is running."""
        return any(known.name == container and known.is_running for known in self.containers)

    def condition(self, condition_type: str) -> PodCondition | None:
        """Return the condition of that type, if there is one."""
        return next(
            (condition for condition in self.conditions or () if condition.type == condition_type),
            None,
        )


def why_not_ready(status: PodStatus) -> Iterator[str]:
    """Yield what the pod is waiting for: a node, a volume, an image, or a daemon that keeps ending."""
    scheduled = status.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        yield f"{scheduled.reason}: {scheduled.message}"
        return
    for container in status.containers:
        waiting = container.state.waiting
        if waiting is None or not waiting.reason or waiting.reason in _EXPECTED:
            continue
        ended = container.last_state.terminated
        more = f" (last ended with {ended.reason} {ended.message}".rstrip() + ")" if ended else ""
        yield f"container {container.name}: {waiting.reason}: {waiting.message or 'no details'}{more}"
