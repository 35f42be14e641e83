"""What the kubelet and the scheduler say of a pod, and why it is not ready, in words."""

from collections.abc import Iterator
from typing import Final

from slurmruntime.crd.fields import Moment, ObjectStruct

_EXPECTED: Final = frozenset({"ContainerCreating", "PodInitializing"})


class PodReason(ObjectStruct, frozen=True):
    """Why a container waits, or how it has ended."""

    reason: str = ""
    message: str = ""


class ToldContainerState(ObjectStruct, frozen=True):
    """One of them at most."""

    running: dict[str, str] | None = None
    waiting: PodReason | None = None
    terminated: PodReason | None = None


class ContainerStatus(ObjectStruct, frozen=True):
    """A container."""

    name: str = ""
    image: str = ""
    """That it was started from, by the name that its pod gave."""
    state: ToldContainerState = ToldContainerState()
    last_state: ToldContainerState = ToldContainerState()
    restart_count: int = 0
    ready: bool = False

    @property
    def last_words(self) -> str:
        """Return what it said when it ended last."""
        ended = self.state.terminated or self.last_state.terminated
        return ended.message if ended else ""

    @property
    def runs(self) -> bool:
        """Whether it does; while nothing is known of it, it does not."""
        return self.state.running is not None

    @property
    def waits_for(self) -> str:
        """Return why it waits; "" if it does not."""
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
        """Return all containers, those first that start first."""
        return (*(self.init_container_statuses or ()), *(self.container_statuses or ()))

    def condition(self, kind: str) -> PodCondition | None:
        """Return the condition of that type."""
        return next(
            (condition for condition in self.conditions or () if condition.type == kind), None
        )


def why_not_ready(status: PodStatus) -> Iterator[str]:
    """Yield what a pod waits for: a node, a volume, an image, or a daemon that ends."""
    scheduled = status.condition("PodScheduled")
    if scheduled is not None and scheduled.status == "False":
        yield f"{scheduled.reason}: {scheduled.message}"
        return
    for container in status.containers:
        waiting = container.state.waiting
        if waiting is None or not waiting.reason or waiting.reason in _EXPECTED:
            continue
        ended = container.last_state.terminated
        more = f", it ended with {ended.reason} {ended.message}".rstrip() if ended else ""
        yield f"container {container.name}: {waiting.reason}: {waiting.message or 'no details'}{more}"
