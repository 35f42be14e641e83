"""Renders a RestApi: slurmrestd, a side-car that terminates TLS, and their Service."""

from collections.abc import Iterator
from typing import Final

from slurmoperator.configuration import changes
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.objects import names
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.parts import KeyOfObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering import pods
from slurmoperator.rendering.access import network, services, tls
from slurmoperator.rendering.access.tls import RestTls
from slurmoperator.rendering.body import BodyOwner, restart_digest
from slurmoperator.rendering.site import ControlSite, configuration_name, controller_faults
from slurmruntime.crd import restapis
from slurmruntime.crd.restapis import SLURMRESTD_PORT
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault, require_none

_APP: Final = "slurmrestd"
_NOBODY: Final = {"runAsNonRoot": True, "runAsUser": 65534, "runAsGroup": 65534}
_FILE: Final = "slurm.conf"


def restapi_bodies(
    rest_api: RestApiObject,
    controller: ControllerObject,
    files: ConfigurationSet,
    site: ControlSite,
    *,
    presented: RestTls | None,
    key_step: int = 0,
) -> tuple[JsonObject, ...]:
    """Return all bodies of a RestApi; with a certificate for TLS (`presented`), or for plain HTTP.

    Raises:
        Refusal: with everything that is wrong with it.
    """
    require_none(_faults(rest_api, controller))
    owner = BodyOwner(kind="RestApi", metadata=rest_api.metadata, app=_APP)
    name = restapis.service_name(rest_api.metadata.name)
    return (
        *(tls.tls_bodies(owner, presented) if presented else ()),
        services.for_clients(owner, name, SLURMRESTD_PORT, rest_api.spec.service),
        *network.network_policy(owner, name, site.network),
        pods.workload(
            owner,
            "Deployment",
            name,
            _specification(rest_api, controller, site, presented, key_step=key_step),
            rest_api.spec.template,
            site=site,
            # slurmrestd reads the file only at startup, and depends only on what slurmctld cannot reconfigure either.
            restarted_for=restart_digest(changes.restart_digest(files.files)),
            replicas=rest_api.spec.replicas,
        ),
    )


def _faults(rest_api: RestApiObject, controller: ControllerObject) -> Iterator[Fault]:
    yield from names.faults("RestApi", rest_api.metadata.name)
    yield from services.faults(rest_api.spec.service)
    yield from controller_faults(rest_api.spec.controller_ref.name, controller)
    mode = rest_api.metadata.annotations.get(restapis.TLS_ANNOTATION, restapis.TLS_OFF)
    if mode != restapis.TLS_OFF:
        text = f"expected {restapis.TLS_OFF} or no annotation, found {mode}"
        yield Fault(f"metadata.annotations[{restapis.TLS_ANNOTATION}]", text)


def _specification(
    rest_api: RestApiObject,
    controller: ControllerObject,
    site: ControlSite,
    presented: RestTls | None,
    *,
    key_step: int,
) -> JsonDict:
    sources = [
        pods.config_file(
            KeyOfObject(name=configuration_name(controller.metadata.name), key=_FILE), _FILE
        ),
        *pods.slurm_key(controller.spec.slurm_key_ref, key_step),
    ]
    slurmrestd = _slurmrestd(rest_api, controller, site, presented)
    volumes = [pods.projected(pods.ETC_VOLUME, 0o600, sources)]
    more: JsonDict = {}
    if presented:
        volumes.append(tls.volume(rest_api.metadata.name, presented.mounted))
        image = site.tls_image or site.images.slurmrestd or str(slurmrestd.get("image", ""))
        more["initContainers"] = [tls.side_car(image, _NOBODY)]
    return {
        **pods.NO_TOKEN,
        "securityContext": {**_NOBODY, "fsGroup": _NOBODY["runAsGroup"]},
        **more,
        "containers": [slurmrestd],
        "volumes": volumes,
    }


def _slurmrestd(
    rest_api: RestApiObject,
    controller: ControllerObject,
    site: ControlSite,
    presented: RestTls | None,
) -> JsonDict:
    without_slurmdbd = ["-s", "openapi/slurmctld"] if controller.spec.accounting_ref is None else []
    theirs = rest_api.spec.slurmrestd or {}
    plain = pods.tcp_probe(_APP)
    ours = {
        "image": site.images.slurmrestd,
        "args": without_slurmdbd,
        "env": [
            {"name": "SLURM_JWT", "value": "daemon"},
            {"name": "SLURMRESTD_SECURITY", "value": "disable_unshare_files,disable_unshare_sysv"},
        ],
        "ports": [{"name": _APP, "containerPort": SLURMRESTD_PORT, "protocol": "TCP"}],
        **(tls.probes() if presented else pods.probes(plain, plain)),
        "securityContext": dict(_NOBODY),
        "volumeMounts": [dict(pods.ETC_MOUNT)],
    }
    container = pods.container(_APP, ours, theirs)
    if not theirs.get("command") and isinstance(args := container.get("args"), list):
        address = tls.LISTENS if presented else f"0.0.0.0:{SLURMRESTD_PORT}"
        container["args"] = [*args, address]  # addresses come after all options
    return container
