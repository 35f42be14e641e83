"""What a RestApi has in the API server: slurmrestd and its Service."""

from collections.abc import Iterator
from typing import Any, Final

from bridge.domain.faults import Fault, Refused, bounded
from cluster.configuration import changes
from cluster.configuration.rendering import ConfigurationSet
from cluster.objects import names
from cluster.objects.controller import ControllerObject
from cluster.objects.parts import KeyOfObject
from cluster.objects.restapi import RestApiObject
from cluster.rendering import pods, services
from cluster.rendering.body import Body, BodyOwner, digest, made
from cluster.rendering.site import ControlSite, configuration_name, controller_faults

SLURMRESTD_PORT: Final = 6820
_APP: Final = "slurmrestd"
_NOBODY: Final = {"runAsNonRoot": True, "runAsUser": 65534, "runAsGroup": 65534}
_FILE: Final = "slurm.conf"


def restapi_bodies(
    rest_api: RestApiObject,
    controller: ControllerObject | None,
    files: ConfigurationSet,
    site: ControlSite,
    *,
    secrets: str = "",
) -> tuple[Body, ...] | Refused:
    """Return all that belongs to a RestApi, or all that is wrong with it.

    Args:
        rest_api: with what its users want.
        controller: the one that it names; None if there is none.
        files: the configuration of that one.
        site: what holds for all clusters.
        secrets: a digest of the Controller's keys; another one restarts slurmrestd.
    """
    found = bounded(_faults(rest_api, controller))
    if found or controller is None or (key := controller.spec.slurm_key_ref) is None:
        return Refused(found)
    owner = BodyOwner(kind="RestApi", metadata=rest_api.metadata, app=_APP)
    name = f"{rest_api.metadata.name}-restapi"
    # It reads the file only at its start, and needs of it only what slurmctld cannot change either while it runs.
    restarted_for = digest([changes.restart_digest(files.files), secrets])
    spec: dict[str, Any] = {
        "replicas": rest_api.spec.replicas,
        "revisionHistoryLimit": 0,
        "selector": {"matchLabels": owner.selecting},
        "template": pods.template(
            owner,
            _specification(rest_api, controller, key, site),
            rest_api.spec.template,
            restarted_for=restarted_for,
        ),
    }
    return (
        services.for_clients(owner, name, SLURMRESTD_PORT, rest_api.spec.service),
        made(owner, "Deployment", name, api_version="apps/v1", parts={"spec": spec}),
    )


def _faults(rest_api: RestApiObject, controller: ControllerObject | None) -> Iterator[Fault]:
    yield from names.faults("RestApi", rest_api.metadata.name)
    yield from services.faults(rest_api.spec.service)
    yield from controller_faults(rest_api.spec.controller_ref.name, controller)


def _specification(
    rest_api: RestApiObject, controller: ControllerObject, key: KeyOfObject, site: ControlSite
) -> dict[str, Any]:
    sources = [
        pods.config_file(
            KeyOfObject(name=configuration_name(controller.metadata.name), key=_FILE), _FILE
        ),
        pods.secret_file(key, "slurm.key"),
    ]
    return {
        **pods.NO_TOKEN,
        "securityContext": {**_NOBODY, "fsGroup": _NOBODY["runAsGroup"]},
        "containers": [_slurmrestd(rest_api, controller, site)],
        "volumes": [pods.projected(pods.ETC_VOLUME, 0o600, sources)],
    }


def _slurmrestd(
    rest_api: RestApiObject, controller: ControllerObject, site: ControlSite
) -> dict[str, Any]:
    without_slurmdbd = ["-s", "openapi/slurmctld"] if controller.spec.accounting_ref is None else []
    theirs = rest_api.spec.slurmrestd or {}
    ours = {
        "image": site.images.slurmrestd,
        "args": without_slurmdbd,
        "env": [
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
        ],
        "ports": [{"name": _APP, "containerPort": SLURMRESTD_PORT, "protocol": "TCP"}],
        "startupProbe": pods.starting(pods.tcp_probe(_APP)),
        "livenessProbe": pods.tcp_probe(_APP, failures=6),
        "readinessProbe": pods.tcp_probe(_APP),
        "securityContext": dict(_NOBODY),
        "volumeMounts": [dict(pods.ETC_MOUNT)],
    }
    found = pods.container(_APP, ours, theirs)
    if not theirs.get("command") and isinstance(args := found.get("args"), list):
        found["args"] = [*args, f"0.0.0.0:{SLURMRESTD_PORT}"]  # addresses stand after all options
    return found
