"""Renders an Accounting: slurmdbd, its configuration and its Service."""

from collections.abc import Iterator
from typing import Final

from slurmoperator.configuration import slurmdbd_conf
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.configuration.slurm_conf import SLURMDBD_PORT
from slurmoperator.objects import names
from slurmoperator.objects.accounting import AccountingObject
from slurmoperator.rendering import pods, trying
from slurmoperator.rendering.access import network, services
from slurmoperator.rendering.body import (
    BodyOwner,
    files_annotations,
    owned_secret,
    restart_digest,
)
from slurmoperator.rendering.overlay import merge
from slurmoperator.rendering.site import (
    SLURM_USER_ID,
    ControlSite,
    slurmdbd_conf_name,
    wanted_slurmdbd_conf_name,
)
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault, require_none

SLURMDBD: Final = "slurmdbd"
CONFIGURATION: Final = "configuration"
"""Name of the init container that tries slurmdbd.conf and installs it."""
_MODE: Final = 0o600
"""With the pod's fsGroup it becomes 0640, which slurmdbd can read; slurmdbd refuses anything wider."""
_SHARED_FIELDS: Final = (
    "image",
    "imagePullPolicy",
    "env",
    "envFrom",
    "resources",
    "securityContext",
)
"""Fields that both containers share, so that slurmdbd runs under the same conditions in its trial as later."""


def accounting_bodies(
    accounting: AccountingObject,
    password: str,
    site: ControlSite,
    *,
    in_force: ConfigurationSet | None = None,
    is_proven: bool = False,
    key_step: int = 0,
) -> tuple[JsonObject, ...]:
    """Return all bodies of an Accounting; none if slurmdbd is external.

    Args:
        password: of its database. Only Secrets among the bodies contain it.
        in_force: the configuration that slurmdbd uses now; None if it is the desired one.
        is_proven: whether a slurmdbd has served with `in_force`.
        key_step: rotation step of the daemons' key; see `slurmoperator.keys.rings`.

    Raises:
        Refusal: with everything that is wrong with it.
    """
    if accounting.spec.external:
        return ()
    require_none(_faults(accounting, password))
    owner = BodyOwner(kind="Accounting", metadata=accounting.metadata, app=SLURMDBD)
    name = f"{accounting.metadata.name}-accounting"
    wanted = slurmdbd_conf.file(accounting, password)
    return (
        _secret(owner, slurmdbd_conf_name(owner.name), in_force or wanted, is_proven=is_proven),
        _secret(owner, wanted_slurmdbd_conf_name(owner.name), wanted),
        services.for_clients(
            owner, name, SLURMDBD_PORT, accounting.spec.service, also=SLURMDBD_PORT
        ),
        *network.network_policy(owner, name, site.network),
        pods.workload(
            owner,
            "StatefulSet",
            name,
            _specification(accounting, site, wanted.digest, key_step=key_step),
            accounting.spec.template,
            site=site,
            restarted_for=restart_digest(wanted.digest),
            serviceName=name,
            podManagementPolicy="Parallel",
        ),
    )


def _secret(
    owner: BodyOwner, name: str, files: ConfigurationSet, *, is_proven: bool = False
) -> JsonDict:
    data = {file: content.encode() for file, content in files.files.items()}
    annotations = files_annotations(files, is_proven=is_proven)
    return owned_secret(owner, name, data, annotations=annotations)


def _faults(accounting: AccountingObject, password: str) -> Iterator[Fault]:
    yield from names.faults("Accounting", accounting.metadata.name)
    yield from services.faults(accounting.spec.service)
    yield from slurmdbd_conf.faults(accounting, password)
    yield from pods.key_faults(accounting.spec)
    if accounting.spec.storage_config is None:
        yield Fault("spec.storageConfig", "expected the database, unless external is true")


def _specification(
    accounting: AccountingObject, site: ControlSite, wanted_digest: str, *, key_step: int
) -> JsonDict:
    spec, name = accounting.spec, accounting.metadata.name
    ours = {
        "image": site.images.slurmdbd,
        "ports": [{"name": SLURMDBD, "containerPort": SLURMDBD_PORT, "protocol": "TCP"}],
        "readinessProbe": pods.tcp_probe(SLURMDBD),
        "securityContext": dict(pods.AS_SLURM),
        "volumeMounts": [dict(pods.ETC_MOUNT), dict(pods.KEYS_MOUNT), dict(pods.RUN_MOUNT)],
    }
    daemon = pods.container(SLURMDBD, ours, spec.slurmdbd)
    return {
        **pods.NO_TOKEN,
        "securityContext": {**pods.AS_SLURM, "fsGroup": SLURM_USER_ID},
        "initContainers": [_trial(accounting, daemon, wanted_digest)],
        "containers": [daemon],
        "volumes": [
            {"name": pods.ETC_VOLUME, **pods.MEMORY},
            _file(pods.WANTED_VOLUME, wanted_slurmdbd_conf_name(name)),
            _file(pods.PROVEN_VOLUME, slurmdbd_conf_name(name)),
            pods.projected(pods.KEYS_VOLUME, _MODE, pods.daemon_keys(spec, key_step)),
            {"name": pods.RUN_MOUNT["name"], **pods.MEMORY},
        ],
    }


def _file(volume: str, secret: str) -> JsonDict:
    return {"name": volume, "secret": {"secretName": secret, "defaultMode": _MODE}}


def _trial(accounting: AccountingObject, daemon: JsonObject, wanted_digest: str) -> JsonDict:
    template = accounting.spec.template
    pod = merge({"containers": [daemon]}, (template.spec if template else None) or {})
    slurmdbd = next(
        (container for container in pod["containers"] if container.get("name") == SLURMDBD), daemon
    )
    mounts = pods.trial_mounts()
    paths = {mount["mountPath"] for mount in mounts}
    theirs = (mount for mount in slurmdbd["volumeMounts"] if mount.get("mountPath") not in paths)
    environment = {**trying.ENVIRONMENT, **trying.LAST_WORDS, "DIGEST": wanted_digest}
    ours = {
        "command": ["bash", "-c", trying.SLURMDBD_SCRIPT],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "volumeMounts": [*mounts, *theirs],
    }
    shared = {key: slurmdbd[key] for key in _SHARED_FIELDS if key in slurmdbd}
    return pods.container(CONFIGURATION, shared, ours)
