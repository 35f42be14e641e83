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
_READS_LOG: Final = 'rm -f "$SOCKET" && mkfifo -m 600 "$SOCKET" && exec 3<>"$SOCKET" && trap "exit 0" TERM && { cat <&3 & wait; }'
"""Opened for both directions: then its reader sees no end when the daemon is restarted. The first process of a container
ignores SIGTERM unless it says otherwise, and a worker's grace is a day."""
NO_TOKEN: Final[Mapping[str, Any]] = {
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}
MEMORY: Final[Mapping[str, Any]] = {"emptyDir": {"medium": "Memory"}}
ETC_MOUNT: Final[Mapping[str, Any]] = {"name": ETC_VOLUME, "mountPath": ETC, "readOnly": True}
LOG_MOUNT: Final[Mapping[str, Any]] = {"name": LOG_VOLUME, "mountPath": LOGS}
LOG: Final[Mapping[str, Any]] = {"name": LOG_VOLUME, **MEMORY}
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
) -> dict[str, Any]:
    """Return a pod template: the user's specification over ours, our labels over theirs.

    Args:
        owner: whose pods they are.
        spec: ours.
        given: what the user lays over it.
        restarted_for: digest of what the daemon reads only at its start.
        labels: more of ours.
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
        "spec": laid_over(spec, (given.spec if given else None) or {}),
    }


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
