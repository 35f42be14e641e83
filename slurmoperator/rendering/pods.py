"""Renders what the pods of several kinds have in common."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from slurmoperator.configuration.slurm_conf import ETC, LOGS
from slurmoperator.keys import rings
from slurmoperator.objects.accounting import AccountingSpec
from slurmoperator.objects.controller import ControllerSpec
from slurmoperator.objects.nodeset import WorkerTemplate
from slurmoperator.objects.parts import KeyOfObject, PodTemplatePart
from slurmoperator.rendering import trying
from slurmoperator.rendering.body import RESTART_ANNOTATION, BodyOwner, merge_metadata, owned_body
from slurmoperator.rendering.overlay import merge
from slurmoperator.rendering.site import SLURM_USER_ID, ControlSite
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault

ETC_VOLUME: Final = "slurm-etc"
LOG_VOLUME: Final = "slurm-logfile"
_LOG_READER_SCRIPT: Final = '[ -p "$SOCKET" ] || { rm -f "$SOCKET" && mkfifo -m 600 "$SOCKET"; } && exec 3<>"$SOCKET" && trap "exit 0" TERM && { cat <&3 & wait; }'
"""Reads a FIFO. It is opened for both directions, so that the reader sees no end of file when the daemon restarts. An existing FIFO is
kept, because the daemon has it open. The trap is needed because the first process of a container ignores SIGTERM by default, and a
worker's grace period is a day."""
NO_TOKEN: Final[JsonObject] = {
    "automountServiceAccountToken": False,
    "enableServiceLinks": False,
}
MEMORY: Final[JsonObject] = {"emptyDir": {"medium": "Memory"}}
ETC_MOUNT: Final[JsonObject] = {"name": ETC_VOLUME, "mountPath": ETC, "readOnly": True}
LOG_MOUNT: Final[JsonObject] = {"name": LOG_VOLUME, "mountPath": LOGS}
LOG: Final[JsonObject] = {"name": LOG_VOLUME, **MEMORY}
_DAEMON_REQUESTS: Final[Mapping[str, Mapping[str, str]]] = {
    "slurmctld": {"cpu": "100m", "memory": "256Mi"},
    "slurmdbd": {"cpu": "50m", "memory": "128Mi"},
    "slurmrestd": {"cpu": "50m", "memory": "128Mi"},
    "slurmd": {"cpu": "100m", "memory": "256Mi"},
    "login": {"cpu": "50m", "memory": "128Mi"},
}
_OTHER_REQUESTS: Final[Mapping[str, str]] = {"memory": "16Mi"}
"""Default requests of our containers. A pod without requests is evicted and OOM-killed first, and its jobs with it."""
MARK: Final[JsonObject] = {"name": "slurm-started", "emptyDir": {}}
MARK_MOUNT: Final[JsonObject] = {"name": MARK["name"], "mountPath": "/var/lib/slurm"}
"""Where slurmd's entry point records that it has run. Not in memory, because it must survive a reboot of the machine."""
KEYS_VOLUME: Final = "slurm-keys"
KEYS_MOUNT: Final[JsonObject] = {
    "name": KEYS_VOLUME,
    "mountPath": trying.KEYS,
    "readOnly": True,
}
RUN_MOUNT: Final[JsonObject] = {"name": "run", "mountPath": "/run"}
WANTED_VOLUME: Final = "slurm-wanted"
PROVEN_VOLUME: Final = "slurm-proven"
AS_SLURM: Final[JsonObject] = {
    "runAsNonRoot": True,
    "runAsUser": SLURM_USER_ID,
    "runAsGroup": SLURM_USER_ID,
}


def workload(
    owner: BodyOwner,
    kind: str,
    name: str,
    spec: JsonObject,
    overrides: PodTemplatePart | None,
    *,
    site: ControlSite,
    restarted_for: str,
    replicas: int = 1,
    **more: object,
) -> JsonDict:
    """Return the StatefulSet or Deployment of a daemon that is restarted for a change of what it reads only at startup (`restarted_for`)."""
    restarts = {RESTART_ANNOTATION: restarted_for}
    merged = merge(spec, (overrides.spec if overrides else None) or {})
    template = {
        "metadata": metadata(owner, overrides, annotations=restarts),
        "spec": protect_from_eviction(spec, merged, site.priority_class),
    }
    body = {
        "replicas": replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": owner.selecting},
        "template": template,
        **more,
    }
    return owned_body(owner, kind, name, api_version="apps/v1", parts={"spec": body})


def metadata(
    owner: BodyOwner,
    overrides: PodTemplatePart | WorkerTemplate | None,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> JsonDict:
    """Return the metadata of pods: our labels and annotations override the user's."""
    return merge_metadata(
        overrides.metadata if overrides else None,
        labels={**owner.labels, **(labels or {})},
        annotations={
            "kubectl.kubernetes.io/default-container": owner.app,
            **(annotations or {}),
        },
    )


def protect_from_eviction(ours: JsonObject, spec: JsonObject, priority_class: str) -> JsonDict:
    """Add requests of our containers and a priority class, so that the pods are not evicted first; the user's resources and priority win.

    Args:
        ours: our specification.
        spec: with the user's overrides merged in.
    """
    protected = dict(spec)
    if priority_class and not protected.get("priorityClassName"):
        protected["priorityClassName"] = priority_class
    if protected.get("resources"):  # for the whole pod: its containers might request more
        return protected
    for field in ("initContainers", "containers"):
        names = {container["name"] for container in ours.get(field) or ()}
        if field in protected:
            protected[field] = [
                _with_requests(container) if container.get("name") in names else container
                for container in protected[field]
            ]
    return protected


def _with_requests(container: JsonObject) -> JsonObject:
    """Return a container with our requests where the user sets neither a request nor a limit, which implies one."""
    resources = container.get("resources") or {}
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    defaults = _DAEMON_REQUESTS.get(container["name"], _OTHER_REQUESTS)
    missing = {
        key: quantity for key, quantity in defaults.items() if key not in {*limits, *requests}
    }
    if not missing:
        return container
    return {**container, "resources": {**resources, "requests": {**missing, **requests}}}


def trial_mounts() -> list[JsonDict]:
    """Return the mounts of a container that tries files and installs them."""
    return [
        {"name": ETC_VOLUME, "mountPath": ETC},
        {"name": WANTED_VOLUME, "mountPath": trying.WANTED, "readOnly": True},
        {"name": PROVEN_VOLUME, "mountPath": trying.PROVEN, "readOnly": True},
        dict(KEYS_MOUNT),
        dict(RUN_MOUNT),
    ]


def container(name: str, ours: JsonObject, theirs: JsonObject | None) -> JsonDict:
    """Return a container with the user's overrides merged in; it keeps its name."""
    return merge({"name": name, **ours}, {**(theirs or {}), "name": name})


def log_reader(image: str, file: str, theirs: JsonObject | None) -> JsonDict:
    """Return the side-car that prints a daemon's log, from the file of this name."""
    ours = {
        "image": image,
        "command": ["sh", "-c", _LOG_READER_SCRIPT],
        "env": [{"name": "SOCKET", "value": f"{LOGS}/{file}"}],
        "restartPolicy": "Always",
        "volumeMounts": [dict(LOG_MOUNT)],
    }
    return container("logfile", ours, theirs)


def http_probe(path: str, port: str | int, *, failures: int = 3) -> JsonDict:
    """Return an HTTP probe on a port of the pod, by number or by its name in the container."""
    get = {"path": path, "port": port}
    return {"httpGet": get, "failureThreshold": failures, "periodSeconds": 10}


def tcp_probe(port: str) -> JsonDict:
    """Return a probe that only opens a TCP connection."""
    return {"tcpSocket": {"port": port}, "failureThreshold": 3, "periodSeconds": 10}


def probes(live: JsonObject, ready: JsonObject) -> JsonDict:
    """Return a daemon's probes.

    The one at its start tries for a minute in total, as with SchedMD's operator, but every second: a daemon that misses the first probe
    would otherwise be unready for ten more seconds, and so would everything that needs it.
    """
    return {
        "startupProbe": {**live, "failureThreshold": 60, "periodSeconds": 1},
        "livenessProbe": {**live, "failureThreshold": 6},
        "readinessProbe": ready,
    }


def one_per_node(labels: Mapping[str, str]) -> JsonDict:
    """Return the anti-affinity that keeps pods with these labels on different nodes."""
    term = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def projected(name: str, mode: int, sources: Sequence[JsonObject]) -> JsonDict:
    """Return a projected volume with files from several objects."""
    return {
        "name": name,
        "projected": {"defaultMode": mode, "sources": [dict(source) for source in sources]},
    }


def secret_file(key: KeyOfObject, path: str) -> JsonDict:
    """Return one key of a Secret as a file of a projected volume."""
    return {"secret": {"name": key.name, "items": [{"key": key.key, "path": path}]}}


def slurm_key(key: KeyOfObject | None, step: int) -> list[JsonDict]:
    """Return the key of Slurm's daemons, or a step of its rotation, as a file of a projected volume; step 0 is the key itself."""
    if key is None:
        return []
    if not step:
        return [secret_file(key, "slurm.key")]
    item = rings.ring_item(key.key, step)
    return [secret_file(KeyOfObject(name=rings.ring_secret(key.name), key=item), "slurm.jwks")]


def daemon_keys(spec: ControllerSpec | AccountingSpec, key_step: int) -> list[JsonDict]:
    """Return the keys that an object names for its daemon, as files of a projected volume."""
    keys = slurm_key(spec.slurm_key_ref, key_step)
    if (jwt_key := spec.jwt_key_ref or spec.jwt_hs256_key_ref) is not None:
        keys.append(secret_file(jwt_key, "jwt.key"))
    if spec.jwks_key_ref is not None:
        keys.append(config_file(spec.jwks_key_ref, "jwks.json"))
    return keys


def key_faults(spec: ControllerSpec | AccountingSpec) -> Iterator[Fault]:
    """Yield the keys that a daemon needs and its object does not name."""
    if spec.slurm_key_ref is None:
        text = "expected the Secret with the key that Slurm's daemons share"
        yield Fault("spec.slurmKeyRef", text)
    if (spec.jwt_key_ref or spec.jwt_hs256_key_ref) is None:
        yield Fault("spec.jwtKeyRef", "expected the Secret with the key that signs tokens")


def config_file(key: KeyOfObject, path: str) -> JsonDict:
    """Return one key of a ConfigMap as a file of a projected volume."""
    return {"configMap": {"name": key.name, "items": [{"key": key.key, "path": path}]}}
