"""Read a pod's containers and the status the kubelet last reported for each."""

from bridge.domain.model import pods
from bridge.kube import odd_numbers, wire


def is_sidecar(init_container: wire.Container) -> bool:
    """Check whether an init container keeps running alongside the main containers."""
    return init_container.restart_policy == "Always"


def read(spec: wire.PodSpec, status: wire.PodStatus) -> tuple[pods.Container, ...]:
    """Return the init containers, then the others, each in spec order."""
    init_statuses = {s.name: s for s in status.init_container_statuses}
    statuses = {s.name: s for s in status.container_statuses}
    return (
        *[
            _container(c, init_statuses.get(c.name), restartable_init=is_sidecar(c))
            for c in spec.init_containers
        ],
        *[_container(c, statuses.get(c.name)) for c in spec.containers],
    )


def _container(
    wired: wire.Container, status: wire.ContainerStatus | None, *, restartable_init: bool = False
) -> pods.Container:
    if status is None:
        return pods.Container(name=wired.name, restartable_init=restartable_init)
    state = status.state
    if ended := state.terminated:
        return pods.Container(
            name=wired.name,
            state=pods.ContainerState.TERMINATED,
            reason=ended.reason,
            message=ended.message,
            exit_code=ended.exit_code,
            signal=ended.signal,
            finished_at=odd_numbers.moment(ended.finished_at),
            started_before=ended.started_at is not None or status.restart_count > 0,
            restartable_init=restartable_init,
        )
    waiting = state.waiting or wire.ContainerStateWaiting()
    return pods.Container(
        name=wired.name,
        state=pods.ContainerState.RUNNING if state.running else pods.ContainerState.WAITING,
        reason=waiting.reason,
        message=waiting.message,
        started_before=state.running is not None or status.restart_count > 0,
        restartable_init=restartable_init,
    )
