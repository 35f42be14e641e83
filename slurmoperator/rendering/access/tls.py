"""Renders TLS for slurmrestd: a side-car that terminates it, its certificate, and the CA that clients trust.

haproxy forwards each connection to one of slurmrestd's at the TCP level: the details of slurmrestd's HTTP are between it and its
clients. <https://docs.haproxy.org/3.2/configuration.html>, 3.1 or newer for `init-state`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering import pods
from slurmoperator.rendering.body import BodyOwner, owned_body, owned_secret
from slurmruntime.crd import restapis
from slurmruntime.crd.restapis import SLURMRESTD_PORT
from slurmruntime.model.objects import JsonDict, JsonObject

CONTAINER: Final = "tls"
LISTENS: Final = "127.0.0.1:6821"
"""slurmrestd's own address behind the side-car; it cannot be reached from outside the pod."""
HEALTH_PORT: Final = 6822
CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
_CONF: Final = "haproxy.cfg"
_FOLDER: Final = "/run/tls"
_VOLUME: Final = "tls"
_HAPROXY: Final = f"""\
global
    log stderr format raw daemon notice
    maxconn 1000
    hard-stop-after 1h
    ssl-load-extra-del-ext
    ssl-default-bind-options ssl-min-ver TLSv1.2

defaults
    mode tcp
    log global
    timeout connect 5s
    timeout client 10m
    timeout client-hs 10s
    timeout server 10m

frontend slurmrestd
    bind *:{SLURMRESTD_PORT} ssl crt {_FOLDER}/{CERTIFICATE} alpn http/1.1
    default_backend daemon

backend daemon
    server slurmrestd {LISTENS} check inter 2s fall 2 rise 1 init-state fully-down

frontend health
    mode http
    timeout client 10s
    bind *:{HEALTH_PORT}
    http-request return status 200 if {{ path /livez }}
    http-request return status 200 if {{ path /readyz }} {{ nbsrv(daemon) ge 1 }}
    http-request return status 503
"""
"""An answer of slurmrestd may take minutes. After a reload, an old haproxy worker keeps serving its connections, for an hour at most."""
_RUN_SCRIPT: Final = f"""\
if ! command -v haproxy > /dev/null; then
  echo "this image has no haproxy: set operator.tls_image of slurm-operator, or annotate the RestApi with {restapis.TLS_ANNOTATION}={restapis.TLS_OFF}" >&2
  exit 1
fi
now() {{ cat {_FOLDER}/* | sha256sum; }}
seen=$(now)
haproxy -W -db -f {_FOLDER}/{_CONF} &
proxy=$!
trap 'kill "$proxy"; wait "$proxy"; exit 0' TERM
while sleep 5; do
  found=$(now)
  [ "$found" = "$seen" ] || {{ seen=$found; kill -USR2 "$proxy"; }}
done &
wait "$proxy"
"""
"""Polls, because only the pod sees when its kubelet has delivered a new certificate. On USR2, haproxy's master starts a worker with it, or
keeps the old one if it is unusable. When the master ends, it waits for all of its children, so the loop must not be one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestTls:
    """The certificate of a slurmrestd, and the CAs that its clients trust."""

    mounted: str
    """Name of the Secret with `CERTIFICATE` and `KEY`."""
    trusted: bytes
    secret_data: Mapping[str, bytes] | None = None
    """Contents of the Secret, if we write it."""


def service_hosts(rest_api: str, namespace: str, domain: str) -> frozenset[str]:
    """Return the DNS names of a RestApi's Service."""
    name = restapis.service_name(rest_api)
    inside = f"{name}.{namespace}"
    return frozenset({name, inside, f"{inside}.svc", f"{inside}.svc.{domain}"})


def tls_bodies(owner: BodyOwner, tls: RestTls) -> tuple[JsonObject, ...]:
    """Return the ConfigMap and the Secret that the side-car and clients read."""
    name = restapis.tls_name(owner.name)
    data = {restapis.TRUSTED: tls.trusted.decode(), _CONF: _HAPROXY}
    public = owned_body(owner, "ConfigMap", name, parts={"data": data})
    if tls.secret_data is None:
        return (public,)
    return public, owned_secret(owner, name, tls.secret_data, type="kubernetes.io/tls")


def authorities_body(
    rest_api: RestApiObject, name: str, authorities: Mapping[str, bytes]
) -> JsonDict:
    """Return the Secret with the CAs of a RestApi and their keys, which is deleted with it; no pod mounts it."""
    owner = BodyOwner(kind="RestApi", metadata=rest_api.metadata, app="slurmrestd")
    return owned_secret(owner, name, authorities)


def side_car(image: str, user: JsonObject) -> JsonDict:
    """Return the container that terminates TLS, from an image with haproxy, for a process of this user and group."""
    return {
        "name": CONTAINER,
        "image": image,
        "command": ["sh", "-c", _RUN_SCRIPT],
        "restartPolicy": "Always",
        "livenessProbe": pods.http_probe("/livez", HEALTH_PORT, failures=6),
        "securityContext": {
            **user,
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": _VOLUME, "mountPath": _FOLDER, "readOnly": True}],
    }


def volume(rest_api: str, secret: str) -> JsonDict:
    """Return the volume of the side-car."""
    items = [{"key": file, "path": file} for file in (CERTIFICATE, KEY)]
    conf = {
        "configMap": {"name": restapis.tls_name(rest_api), "items": [{"key": _CONF, "path": _CONF}]}
    }
    return pods.projected(_VOLUME, 0o440, [conf, {"secret": {"name": secret, "items": items}}])


def probes() -> JsonDict:
    """Return slurmrestd's probes; they go through the side-car, because only that can reach it."""
    probe = pods.http_probe("/readyz", HEALTH_PORT)
    return pods.probes(probe, probe)
