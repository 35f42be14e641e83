"""What the pods of several kinds have in common."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cluster.configuration.slurm_conf import ETC, LOGS
from cluster.keys import rings
from cluster.objects.nodeset import WorkerTemplate
from cluster.objects.parts import KeyOfObject, PodTemplatePart
from cluster.rendering.body import RESTART_ANNOTATION, BodyOwner, marked
from cluster.rendering.overlay import laid_over
from cluster.rendering.site import SLURM_USER_ID

ETC_VOLUME: Final = "slurm-etc"
LOG_VOLUME: Final = "slurm-logfile"
_READS_LOG: Final = '[ -p "$SOCKET" ] || { rm -f "$SOCKET" && mkfifo -m 600 "$SOCKET"; } && exec 3<>"$SOCKET" && trap "exit 0" TERM && { cat <&3 & wait; }'
"""Opened for both directions: then its reader sees no end when the daemon is restarted. One that is there already is kept, as the
daemon has it open. The first process of a container ignores SIGTERM unless it says otherwise, and a worker's grace is a day."""
NO_TOKEN: Final[Mapping[str, Any]] = {
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}
MEMORY: Final[Mapping[str, Any]] = {"emptyDir": {"medium": "Memory"}}
ETC_MOUNT: Final[Mapping[str, Any]] = {"name": ETC_VOLUME, "mountPath": ETC, "readOnly": True}
LOG_MOUNT: Final[Mapping[str, Any]] = {"name": LOG_VOLUME, "mountPath": LOGS}
LOG: Final[Mapping[str, Any]] = {"name": LOG_VOLUME, **MEMORY}
_OF_DAEMONS: Final[Mapping[str, Mapping[str, str]]] = {
    "slurmctld": {"cpu": "100m", "memory": "256Mi"},
    "slurmdbd": {"cpu": "50m", "memory": "128Mi"},
    "slurmrestd": {"cpu": "50m", "memory": "128Mi"},
    "slurmd": {"cpu": "100m", "memory": "256Mi"},
    "login": {"cpu": "50m", "memory": "128Mi"},
}
_OF_OTHERS: Final[Mapping[str, str]] = {"memory": "16Mi"}
"""Requests of our containers, if nobody says anything: a pod without any is evicted first and killed first, and with it the jobs.

Memory is what counts for that. A side-car asks for no CPU: on a worker's node that ordinary pods share, a filler would hold a whole one.
"""
MARK: Final[Mapping[str, Any]] = {"name": "slurm-started", "emptyDir": {}}
MARK_MOUNT: Final[Mapping[str, Any]] = {"name": MARK["name"], "mountPath": "/var/lib/slurm"}
"""Where slurmd's entry point notes that it was here: not in memory, as a restart of the machine must not take it away."""
AS_SLURM: Final[Mapping[str, Any]] = {
    "runAsNonRoot": True,
    "runAsUser": SLURM_USER_ID,
    "runAsGroup": SLURM_USER_ID,
}


def template(
    owner: BodyOwner,
    spec: Mapping[str, Any],
    given: PodTemplatePart | WorkerTemplate | None,
    *,
    restarted_for: str = "",
    labels: Mapping[str, str] | None = None,
    priority_class: str = "",
) -> dict[str, Any]:
    """Return a pod template: the user's specification over ours, our labels over theirs.

    Args:
        owner: whose pods they are.
        spec: ours.
        given: what the user lays over it.
        restarted_for: digest of what the daemon reads only at its start.
        labels: more of ours.
        priority_class: of pods that name none; "" for the cluster's default.
    """
    annotations = {"kubectl.kubernetes.io/default-container": owner.app}
    if restarted_for:
        annotations[RESTART_ANNOTATION] = restarted_for
    return {
        "metadata": marked(
            given.metadata if given else None,
            labels={**owner.labels, **(labels or {})},
            annotations=annotations,
        ),
        "spec": cared_for(
            spec, laid_over(spec, (given.spec if given else None) or {}), priority_class
        ),
    }


def cared_for(
    ours: Mapping[str, Any], spec: Mapping[str, Any], priority_class: str
) -> dict[str, Any]:
    """Return a specification whose pods are not the first to be evicted; what their user says of resources or priority wins.

    Args:
        ours: says which containers are ours.
        spec: with the user's part laid over it.
        priority_class: of pods that name none; "" for the cluster's default.
    """
    found = dict(spec)
    if priority_class and not found.get("priorityClassName"):
        found["priorityClassName"] = priority_class
    if found.get("resources"):  # of the whole pod: more for its containers might not fit
        return found
    for field in ("initContainers", "containers"):
        names = {each["name"] for each in ours.get(field) or ()}
        if field in found:
            found[field] = [
                _asking(each) if each.get("name") in names else each for each in found[field]
            ]
    return found


def _asking(container: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a container with our requests for what its user says nothing about: a limit is a request, too."""
    given = container.get("resources") or {}
    limits, requests = given.get("limits") or {}, given.get("requests") or {}
    wanted = _OF_DAEMONS.get(container["name"], _OF_OTHERS)
    more = {key: each for key, each in wanted.items() if key not in {*limits, *requests}}
    return (
        {**container, "resources": {**given, "requests": {**more, **requests}}}
        if more
        else container
    )


def container(
    name: str, ours: Mapping[str, Any], theirs: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a container: the user's over ours, under its own name."""
    return laid_over({"name": name, **ours}, {**(theirs or {}), "name": name})


def log_reader(image: str, file: str, theirs: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the side-car that prints a daemon's log.

    Args:
        image: for want of another.
        file: the log.
        theirs: what the user lays over it.
    """
    ours = {
        "image": image,
        "command": ["sh", "-c", _READS_LOG],
        "env": [{"name": "SOCKET", "value": f"{LOGS}/{file}"}],
        "restartPolicy": "Always",
        "volumeMounts": [dict(LOG_MOUNT)],
    }
    return container("logfile", ours, theirs)


def http_probe(
    path: str, port: str | int, *, failures: int = 3, period_s: int = 10
) -> dict[str, Any]:
    """Return a probe that asks by HTTP on a port of the pod; a name is that of one of the container's own."""
    return {
        "httpGet": {"path": path, "port": port},
        "failureThreshold": failures,
        "periodSeconds": period_s,
    }


def tcp_probe(port: str, *, failures: int = 3, period_s: int = 10) -> dict[str, Any]:
    """Return a probe that only connects."""
    return {
        "tcpSocket": {"port": port},
        "failureThreshold": failures,
        "periodSeconds": period_s,
    }


def starting(probe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a probe for a start: as patient as theirs, a minute, but it looks every second.

    A daemon that is not there at the first look would wait ten seconds for the next one, and so would all who need it.
    """
    return {**probe, "failureThreshold": 60, "periodSeconds": 1}


def projected(name: str, mode: int, sources: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a volume of files from several objects."""
    return {
        "name": name,
        "projected": {"defaultMode": mode, "sources": [dict(each) for each in sources]},
    }


def secret_file(key: KeyOfObject, path: str) -> dict[str, Any]:
    """Return one key of a Secret as a file of a projected volume."""
    return {"secret": {"name": key.name, "items": [{"key": key.key, "path": path}]}}


def slurm_key(key: KeyOfObject, step: int) -> dict[str, Any]:
    """Return the key of Slurm's daemons as a file of a projected volume.

    Args:
        key: the one that the Controller names.
        step: on the way to another one; 0 for that one itself.
    """
    if not step:
        return secret_file(key, "slurm.key")
    item = rings.ring_item(key.key, step)
    return secret_file(KeyOfObject(name=rings.ring_secret(key.name), key=item), "slurm.jwks")


def config_file(key: KeyOfObject, path: str) -> dict[str, Any]:
    """Return one key of a ConfigMap as a file of a projected volume."""
    return {"configMap": {"name": key.name, "items": [{"key": key.key, "path": path}]}}
