"""Ways in which real containers end: what is run, who interferes, and the line of docs/lifecycle.md."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from slurmruntime.values import names
from tests.realnodes.containers import Containers, running

Pod = dict[str, Any]
Act = Callable[[Containers, str, str], None]
"""Interferes with a pod, given its name and its job's id."""

_FOR_LONG = "sleep 600"
_LATER = {"slurmjob.slinky.slurm.net/begin": "2099-01-01T00:00:00Z"}
_EATS = "dd if=/dev/zero of=/dev/null bs=200M count=2"
_IGNORES_TERM = "trap '' TERM; while :; do sleep 0.1; done"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """One way to end."""

    name: str
    page: str
    """The first cell of its row in docs/lifecycle.md."""
    sacct: str
    """State and, where the page has one, exit code."""
    scripts: Sequence[str] = ()
    """One for each container."""
    limits: Mapping[str, str] = field(default_factory=dict)
    """Beside the usual ones."""
    notes: Mapping[str, str] = field(default_factory=dict)
    spec: Mapping[str, Any] = field(default_factory=dict)
    act: Act | None = None
    ready: Callable[[Pod], bool] | None = None
    """When to act; None: as soon as all containers run."""
    everywhere: bool = False
    """In CI too."""


def runs(pod: Pod) -> bool:
    """All its containers run."""
    statuses = pod["status"].get("containerStatuses", [])
    return bool(statuses) and all("running" in status["state"] for status in statuses)


def waits(pod: Pod) -> bool:
    """Slurm has its job."""
    return names.JOB_ID_LABEL in pod["metadata"].get("labels", {})


def _is_stuck(*reasons: str) -> Callable[[Pod], bool]:
    def is_stuck(pod: Pod) -> bool:
        states = (
            container_status["state"]
            for container_status in pod["status"].get("containerStatuses", [])
        )
        return any(state.get("waiting", {}).get("reason") in reasons for state in states)

    return is_stuck


def _scancel(there: Containers, name: str, job: str) -> None:
    there.sandbox.run("scancel", job)


def _suspend(there: Containers, name: str, job: str) -> None:
    there.sandbox.run("scontrol", "suspend", job)


def _delete(there: Containers, name: str, job: str) -> None:
    there.sandbox.kubectl("-n", there.namespace, "delete", "pod", name, "--wait=false")


def _delete_by_force(there: Containers, name: str, job: str) -> None:
    force = ("--wait=false", "--force", "--grace-period=0")
    there.sandbox.kubectl("-n", there.namespace, "delete", "pod", name, *force)


def _evict(there: Containers, name: str, job: str) -> None:
    there.sandbox.admin.create(
        f"/api/v1/namespaces/{there.namespace}/pods/{name}/eviction",
        {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
    )


def _first(script: str, **more: object) -> Mapping[str, Any]:
    """A spec whose init container runs a script."""
    (container,) = running([script])["containers"]
    return {"initContainers": [{**container, "name": "first", **more}]}


def _beside(script: str) -> Mapping[str, Any]:
    """A spec with a sidecar."""
    return _first(script, restartPolicy="Always")


def _changed(script: str, **more: object) -> Mapping[str, Any]:
    """A spec whose only container has other fields too."""
    (container,) = running([script])["containers"]
    return {"containers": [{**container, **more}]}


_FAILS = "exit code n"
_DELETED = "pod, owner or namespace deleted; evicted by the Eviction API (kubectl drain)"
_SIGNAL = "killed by signal n, or exit code 128 + n with n up to 64"
_AS_A_WHOLE = "Failed as a whole (Evicted, Preempting, DeadlineExceeded, NodeLost …), whatever its containers report"
_NOT_RUN = _is_stuck("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull")

ENDINGS: Sequence[Ending] = (
    Ending(
        name="succeeds",
        page="containers exit with 0",
        sacct="COMPLETED 0:0",
        scripts=["exit 0", "sleep 1"],
        everywhere=True,
    ),
    Ending(
        name="fails",
        page="a container exits with 3",
        sacct="FAILED 3:0",
        scripts=["exit 3"],
        everywhere=True,
    ),
    Ending(name="fails-high", page=_FAILS, sacct="FAILED 200:0", scripts=["exit 200"]),
    Ending(
        name="never-found",
        page=_FAILS,
        sacct="FAILED 128:0",
        spec=_changed("", command=["/no/such/program"]),
        everywhere=True,
    ),
    Ending(
        name="eats-memory",
        page="a container is OOMKilled",
        sacct="OUT_OF_MEMORY 0:125",
        scripts=[f"{_EATS}; exit $?"],
        limits={"cpu": "500m", "memory": "32Mi"},
        everywhere=True,
    ),
    Ending(
        name="crashes",
        page="a container dies of signal 11",
        sacct="FAILED 0:11",
        scripts=["sh -c 'kill -SEGV $$$$'; exit $?"],
        everywhere=True,
    ),
    Ending(
        name="killed",
        page=_SIGNAL,
        sacct="FAILED 0:9",
        scripts=["sh -c 'kill -KILL $$$$'; exit $?"],
    ),
    Ending(
        name="unhealthy",
        page=_SIGNAL,
        sacct="FAILED 0:9",
        spec=_changed(
            _FOR_LONG,
            livenessProbe={
                "exec": {"command": ["false"]},
                "periodSeconds": 1,
                "failureThreshold": 1,
            },
        ),
    ),
    Ending(
        name="fails-first",
        page=_FAILS,
        sacct="FAILED 4:0",
        scripts=["exit 0"],
        spec=_first("exit 4"),
        everywhere=True,
    ),
    Ending(
        name="sidecar-fails",
        page="Succeeded",
        sacct="COMPLETED 0:0",
        scripts=["sleep 1"],
        spec=_beside("trap 'exit 9' TERM; while :; do sleep 0.1; done"),
        everywhere=True,
    ),
    Ending(
        name="sidecar-stays",
        page="Succeeded",
        sacct="COMPLETED 0:0",
        scripts=["sleep 1"],
        spec=_beside(_IGNORES_TERM),
    ),
    Ending(
        name="fails-beside-sidecar",
        page=_FAILS,
        sacct="FAILED 5:0",
        scripts=["sleep 1; exit 5"],
        spec=_beside(_IGNORES_TERM),
    ),
    Ending(
        name="second-try",
        page="Succeeded",
        sacct="COMPLETED 0:0",
        scripts=["[ -e /scratch/tried ] || { touch /scratch/tried; exit 1; }"],
        spec={"restartPolicy": "OnFailure"},
    ),
    Ending(
        name="too-long",
        page=_AS_A_WHOLE,
        sacct="FAILED 255:0",
        scripts=[_FOR_LONG],
        spec={"activeDeadlineSeconds": 3},
        everywhere=True,
    ),
    Ending(
        name="fills-disk",
        page=_AS_A_WHOLE,
        sacct="FAILED 255:0",
        scripts=[f"dd if=/dev/zero of=/scratch/much bs=1M count=8; {_FOR_LONG}"],
    ),
    Ending(
        name="no-image",
        page=_DELETED,
        sacct="CANCELLED",
        spec=_changed("", image="no/such:1", imagePullPolicy="Never"),
        ready=_NOT_RUN,
        act=_delete,
        everywhere=True,
    ),
    Ending(
        name="never-starts",
        page="no container started within `controllers.start_deadline_s`",
        sacct="FAILED 255:0",
        spec=_changed("", image="no/such:1", imagePullPolicy="Never"),
    ),
    Ending(
        name="loops",
        page="scancel",
        sacct="CANCELLED",
        scripts=["exit 1"],
        spec={"restartPolicy": "Always"},
        ready=_is_stuck("CrashLoopBackOff"),
        act=_scancel,
    ),
    Ending(
        name="scancelled",
        page="scancel",
        sacct="CANCELLED",
        scripts=[_IGNORES_TERM],
        act=_scancel,
        everywhere=True,
    ),
    Ending(
        name="pre-stop",
        page=_DELETED,
        sacct="CANCELLED",
        spec=_changed(
            _FOR_LONG, lifecycle={"preStop": {"exec": {"command": ["sh", "-c", "sleep 1"]}}}
        ),
        act=_delete,
        everywhere=True,
    ),
    Ending(name="deleted", page=_DELETED, sacct="CANCELLED", scripts=[_IGNORES_TERM], act=_delete),
    Ending(
        name="deleted-by-force",
        page=_DELETED,
        sacct="CANCELLED",
        scripts=[_IGNORES_TERM],
        act=_delete_by_force,
        everywhere=True,
    ),
    Ending(name="evicted", page=_DELETED, sacct="CANCELLED", scripts=[_FOR_LONG], act=_evict),
    Ending(
        name="deleted-waiting",
        page="the same while it waits",
        sacct="CANCELLED",
        scripts=[_FOR_LONG],
        notes=_LATER,
        ready=waits,
        act=_delete,
    ),
    Ending(
        name="scancelled-waiting",
        page="scancel while it waits",
        sacct="CANCELLED",
        scripts=[_FOR_LONG],
        notes=_LATER,
        ready=waits,
        act=_scancel,
    ),
    Ending(
        name="suspended",
        page="suspended (`scontrol suspend`), by an administrator or the job's user",
        sacct="CANCELLED",
        scripts=[_FOR_LONG],
        act=_suspend,
    ),
    Ending(
        name="out-of-time",
        page="time limit reached",
        sacct="TIMEOUT",
        scripts=[_FOR_LONG],
        notes={"slurmjob.slinky.slurm.net/timelimit": "1"},
    ),
)
