"""One pod in a Kubernetes whose kubelet tells late: what is, beside what the API server says."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bridge.domain.lifecycle.actions import Cause, Tell
from bridge.domain.lifecycle.decision import Fit
from bridge.domain.model.pods import Condition, Container, ContainerState, Phase, Pod
from slurmruntime.values import names
from slurmruntime.values.ids import JobId, KubeNode, PodUid, Sluid, SlurmNode

UID = PodUid("pod-1")
FOREIGN_GATE = "kueue.x-k8s.io/admission"
KUBE_NODES = {SlurmNode("s1"): KubeNode("k1"), SlurmNode("s2"): KubeNode("k2")}
GRACE_S = 30


def new_pod(now: datetime) -> Pod:
    """As the webhook leaves it, another controller's gate beside ours."""
    return Pod(
        uid=UID,
        namespace="ns",
        name="p",
        resource_version="1",
        created_at=now,
        gates=(names.GATE, FOREIGN_GATE),
        finalizers=(names.FINALIZER,),
        containers=(Container(name="main"),),
    )


@dataclass(slots=True)
class Cluster:
    """The pod, its kubelet, and the nodes."""

    pod: Pod | None
    is_running: bool = False
    """Whether its container really runs, told or not."""
    exit_code: int | None = None
    """How it really ended by itself."""
    exited_at: datetime | None = None
    deleted_at: datetime | None = None
    """When somebody really asked for its deletion."""
    placed_by: Sluid | None = None
    """The placeholder that its pin was decided on."""
    lost_nodes: set[KubeNode] = field(default_factory=set)
    unknown_nodes: set[SlurmNode] = field(default_factory=set)
    is_unbindable: bool = False
    """kube-scheduler says that it cannot bind the pod."""
    fits: dict[KubeNode, Fit] = field(
        default_factory=lambda: dict.fromkeys(KUBE_NODES.values(), Fit.FITS)
    )

    def change(self, **changes: Any) -> None:
        if self.pod is not None:
            version = str(int(self.pod.resource_version) + 1)
            self.pod = replace(self.pod, resource_version=version, **changes)
            self.forget_what_is_over()

    def when(self, condition: Callable[[Pod], bool]) -> bool:
        return self.pod is not None and condition(self.pod)

    @property
    def node_is_gone(self) -> bool:
        return self.when(lambda pod: pod.kube_node in self.lost_nodes)

    # --- what we write ------------------------------------------------------------------

    def assign(self, job_id: JobId, node: KubeNode, placed_by: Sluid | None) -> None:
        """Guarded by the gate."""
        pod = self.pod
        if pod is None or not pod.is_gated:
            return
        self.placed_by = placed_by
        self.change(
            gates=tuple(gate for gate in pod.gates if gate != names.GATE),
            labels={**pod.labels, names.JOB_ID_LABEL: str(job_id)},
            annotations={
                **pod.annotations,
                names.NODE_ANNOTATION: node,
                names.SLUID_ANNOTATION: placed_by or "",
            },
        )

    def tell(self, tell: Tell) -> None:
        """The label is guarded by the gate."""
        pod = self.pod
        if pod is None or (tell.job_id is not None and not pod.is_gated):
            return
        label = {names.JOB_ID_LABEL: str(tell.job_id)} if tell.job_id is not None else {}
        said = Condition(
            type=names.ALLOCATED_CONDITION,
            status="True" if tell.allocated else "False",
            reason=tell.reason,
            message=tell.message,
        )
        self.change(labels={**pod.labels, **label}, conditions=(said,))

    def say_why(self, cause: Cause) -> None:
        """As an eviction does."""
        said = Condition(type=names.ALLOCATED_CONDITION, status="False", reason=cause.value)
        self.change(conditions=(said,))

    def delete(self, now: datetime, *, grace_s: int = GRACE_S) -> None:
        pod = self.pod
        if pod is None:
            return
        grace_s = grace_s if pod.is_bound and not pod.is_terminal else 0
        if not pod.is_deleting or grace_s < pod.deletion_grace_s:
            asked = self.deleted_at = self.deleted_at or now
            self.change(deletion_at=asked + timedelta(seconds=grace_s), deletion_grace_s=grace_s)

    def fail_at_gate(self) -> None:
        if self.when(lambda pod: pod.is_gated and not pod.is_terminal):
            self.change(phase=Phase.FAILED)

    def release(self) -> None:
        if self.when(lambda pod: pod.has_our_finalizer):
            self.change(finalizers=())

    def lift(self, gate: str) -> None:
        if self.pod is not None and gate in self.pod.gates:
            self.change(gates=tuple(other for other in self.pod.gates if other != gate))

    # --- what others do -----------------------------------------------------------------

    def forget_what_is_over(self) -> None:
        """The API server removes a deleted pod without finalizers once its kubelet has let go of it."""
        pod = self.pod
        if pod is None or not pod.is_deleting or pod.finalizers:
            return
        kubelet_has_it = pod.start_time is not None and not pod.is_terminal
        if not kubelet_has_it or pod.deletion_grace_s == 0 or self.node_is_gone:
            self.pod, self.is_running = None, False

    def bind(self) -> None:
        """Kubernetes binds no deleting pod; our extender none that we did not assign."""
        pod = self.pod
        if pod and not (pod.gates or pod.is_bound or pod.is_deleting or pod.is_terminal):
            self.change(kube_node=pod.assigned_node)

    def kubelet_accepts(self, now: datetime) -> None:
        pod = self.pod
        if pod and pod.is_bound and not (pod.is_deleting or pod.is_terminal or self.node_is_gone):
            self.change(start_time=pod.start_time or now)

    def kubelet_starts(self) -> None:
        """Before it says so."""
        pod = self.pod
        if pod and pod.start_time and not (pod.is_deleting or pod.is_terminal or self.has_ended):
            self.is_running = not self.node_is_gone

    @property
    def has_ended(self) -> bool:
        return self.exit_code is not None

    def exits(self, code: int, now: datetime) -> None:
        """By itself with this code; one that was told to stop is stopped."""
        if self.is_running:
            code = 143 if self.when(lambda pod: pod.is_deleting) else code
            self.is_running, self.exit_code, self.exited_at = False, code, now

    def kubelet_stops_deleted(self, now: datetime) -> None:
        if self.when(lambda pod: pod.is_deleting and pod.start_time is not None):
            self.exits(143, now)
            self.exit_code = 143 if self.exit_code is None else self.exit_code

    def kubelet_reports(self) -> None:
        pod = self.pod
        if pod is None or pod.is_terminal or self.node_is_gone:
            return
        if self.is_running:
            running = Container(name="main", state=ContainerState.RUNNING, started_before=True)
            self.change(phase=Phase.RUNNING, containers=(running,))
        elif self.exit_code is not None:
            over = Container(
                name="main",
                state=ContainerState.TERMINATED,
                exit_code=self.exit_code,
                started_before=self.exited_at is not None,
                finished_at=self.exited_at,
            )
            phase = Phase.FAILED if self.exit_code else Phase.SUCCEEDED
            self.change(phase=phase, containers=(over,))

    def kubelet_lets_go(self) -> None:
        """Its last DELETE, with no grace, seconds after the end: it overwrites when the deletion was asked for."""
        pod = self.pod
        if pod is None or pod.deletion_at is None or not pod.is_terminal or self.exited_at is None:
            return
        if pod.deletion_grace_s and not self.node_is_gone:
            now = max(self.exited_at, self.deleted_at or self.exited_at) + timedelta(seconds=3)
            self.change(deletion_at=min(pod.deletion_at, now), deletion_grace_s=0)

    @property
    def ended_by_itself(self) -> bool:
        """In truth; both moments are known exactly here."""
        asked = self.deleted_at
        return self.exited_at is not None and (asked is None or self.exited_at < asked)

    def lose_node(self, node: KubeNode) -> None:
        """Declared out of service: by then nothing runs there."""
        self.lost_nodes.add(node)
        if self.node_is_gone:
            self.is_running = False
