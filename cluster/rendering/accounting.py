"""What an Accounting has in the API server: slurmdbd, its configuration, and its Service."""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bridge.domain.faults import Fault, Refused, bounded
from cluster.configuration import slurmdbd_conf
from cluster.configuration.rendering import ConfigurationSet
from cluster.configuration.slurm_conf import ETC, SLURMDBD_PORT
from cluster.objects import names
from cluster.objects.accounting import AccountingObject
from cluster.objects.parts import KeyOfObject
from cluster.rendering import pods, trying
from cluster.rendering.access import network, services
from cluster.rendering.body import (
    CONFIGURATION_ANNOTATION,
    PROVEN_ANNOTATION,
    Body,
    BodyOwner,
    digest,
    made,
)
from cluster.rendering.overlay import laid_over
from cluster.rendering.site import (
    SLURM_USER_ID,
    ControlSite,
    slurmdbd_conf_name,
    wanted_slurmdbd_conf_name,
)

SLURMDBD: Final = "slurmdbd"
"""The container of the daemon."""
CONFIGURATION: Final = "configuration"
"""The one that tries its file before, and puts it in force."""
_MODE: Final = 0o600
"""The group of the pod makes it a 0640 that slurmdbd can read; it refuses anything wider."""
_WANTED_VOLUME: Final = "slurm-wanted"
_PROVEN_VOLUME: Final = "slurm-proven"
_KEYS_VOLUME: Final = "slurm-keys"
_KEYS_MOUNT: Final = {"name": _KEYS_VOLUME, "mountPath": trying.KEYS, "readOnly": True}
_RUN_MOUNT: Final = {"name": "run", "mountPath": "/run"}
_AS_THE_DAEMON: Final = (
    "image",
    "imagePullPolicy",
    "env",
    "envFrom",
    "resources",
    "securityContext",
)
"""What the two containers have in common: then slurmdbd finds at its trial what it finds later."""


def accounting_bodies(
    accounting: AccountingObject,
    password: str,
    site: ControlSite,
    *,
    in_force: ConfigurationSet | None = None,
    is_proven: bool = False,
    secrets: str = "",
    key_step: int = 0,
) -> tuple[Body, ...] | Refused:
    """Return all that belongs to an Accounting, or all that is wrong with it; nothing if slurmdbd runs elsewhere.

    Args:
        accounting: with what its users want.
        password: of its database, from the Secret that it names. It stands in Secrets among the bodies.
        site: what holds for all clusters.
        in_force: slurmdbd's file that is; None for the one that is wanted.
        is_proven: whether a slurmdbd was seen to serve with `in_force`.
        secrets: a digest of its keys; another one restarts slurmdbd.
        key_step: of the daemons' key; see `cluster.keys.rings`.
    """
    if accounting.spec.external:
        return ()
    if found := bounded(_faults(accounting, password)):
        return Refused(found)
    owner = BodyOwner(kind="Accounting", metadata=accounting.metadata, app=SLURMDBD)
    name = f"{accounting.metadata.name}-accounting"
    wanted = slurmdbd_conf.file(accounting, password)
    spec: dict[str, Any] = {
        "replicas": 1,
        "revisionHistoryLimit": 0,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": owner.selecting},
        "serviceName": name,
        "template": pods.template(
            owner,
            _specification(accounting, site, wanted.digest, key_step=key_step),
            accounting.spec.template,
            restarted_for=digest([wanted.digest, secrets]),
            priority_class=site.priority_class,
        ),
    }
    return (
        _secret(owner, slurmdbd_conf_name(owner.name), in_force or wanted, is_proven=is_proven),
        _secret(owner, wanted_slurmdbd_conf_name(owner.name), wanted),
        services.for_clients(
            owner, name, SLURMDBD_PORT, accounting.spec.service, also=SLURMDBD_PORT
        ),
        *network.network_policy(owner, name, site.network),
        made(owner, "StatefulSet", name, api_version="apps/v1", parts={"spec": spec}),
    )


def _secret(
    owner: BodyOwner, name: str, files: ConfigurationSet, *, is_proven: bool = False
) -> Body:
    annotations = {CONFIGURATION_ANNOTATION: files.digest}
    if is_proven:
        annotations[PROVEN_ANNOTATION] = files.tag
    data = {file: base64.b64encode(each.encode()).decode() for file, each in files.files.items()}
    parts = {"type": "Opaque", "data": data}
    return made(owner, "Secret", name, annotations=annotations, parts=parts)


def _faults(accounting: AccountingObject, password: str) -> Iterator[Fault]:
    yield from names.faults("Accounting", accounting.metadata.name)
    yield from services.faults(accounting.spec.service)
    yield from slurmdbd_conf.faults(accounting, password)
    if accounting.spec.slurm_key_ref is None:
        yield Fault("spec.slurmKeyRef", "expected the Secret with the key that its daemons share")
    if _jwt_key(accounting) is None:
        yield Fault("spec.jwtKeyRef", "expected the Secret with the key that signs tokens")
    if accounting.spec.storage_config is None:
        yield Fault("spec.storageConfig", "expected the database, unless external is true")


def _jwt_key(accounting: AccountingObject) -> KeyOfObject | None:
    return accounting.spec.jwt_key_ref or accounting.spec.jwt_hs256_key_ref


def _specification(
    accounting: AccountingObject, site: ControlSite, digest_wanted: str, *, key_step: int
) -> dict[str, Any]:
    spec, name = accounting.spec, accounting.metadata.name
    keys: list[dict[str, Any]] = []
    if spec.slurm_key_ref is not None:
        keys.append(pods.slurm_key(spec.slurm_key_ref, key_step))
    if (jwt_key := _jwt_key(accounting)) is not None:
        keys.append(pods.secret_file(jwt_key, "jwt.key"))
    if spec.jwks_key_ref is not None:
        keys.append(pods.config_file(spec.jwks_key_ref, "jwks.json"))
    ours = {
        "image": site.images.slurmdbd,
        "ports": [{"name": SLURMDBD, "containerPort": SLURMDBD_PORT, "protocol": "TCP"}],
        "readinessProbe": pods.tcp_probe(SLURMDBD),
        "securityContext": dict(pods.AS_SLURM),
        "volumeMounts": [dict(pods.ETC_MOUNT), dict(_KEYS_MOUNT), dict(_RUN_MOUNT)],
    }
    daemon = pods.container(SLURMDBD, ours, spec.slurmdbd)
    return {
        **pods.NO_TOKEN,
        "securityContext": {**pods.AS_SLURM, "fsGroup": SLURM_USER_ID},
        "initContainers": [_trial(accounting, daemon, digest_wanted)],
        "containers": [daemon],
        "volumes": [
            {"name": pods.ETC_VOLUME, **pods.MEMORY},
            _file(_WANTED_VOLUME, wanted_slurmdbd_conf_name(name)),
            _file(_PROVEN_VOLUME, slurmdbd_conf_name(name)),
            pods.projected(_KEYS_VOLUME, _MODE, keys),
            {"name": "run", **pods.MEMORY},
        ],
    }


def _file(volume: str, secret: str) -> dict[str, Any]:
    return {"name": volume, "secret": {"secretName": secret, "defaultMode": _MODE}}


def _trial(
    accounting: AccountingObject, daemon: Mapping[str, Any], digest_wanted: str
) -> dict[str, Any]:
    template = accounting.spec.template
    pod = laid_over({"containers": [daemon]}, (template.spec if template else None) or {})
    found = next((each for each in pod["containers"] if each.get("name") == SLURMDBD), daemon)
    mounts: list[dict[str, Any]] = [
        {"name": pods.ETC_VOLUME, "mountPath": ETC},
        {"name": _WANTED_VOLUME, "mountPath": trying.WANTED, "readOnly": True},
        {"name": _PROVEN_VOLUME, "mountPath": trying.PROVEN, "readOnly": True},
        dict(_KEYS_MOUNT),
        dict(_RUN_MOUNT),
    ]
    paths = {each["mountPath"] for each in mounts}
    theirs = (each for each in found["volumeMounts"] if each.get("mountPath") not in paths)
    environment = {**trying.ENVIRONMENT, **trying.LAST_WORDS, "DIGEST": digest_wanted}
    ours = {
        "command": ["bash", "-c", trying.SLURMDBD_SCRIPT],
        "env": [{"name": key, "value": value} for key, value in environment.items()],
        "volumeMounts": [*mounts, *theirs],
    }
    shared = {key: found[key] for key in _AS_THE_DAEMON if key in found}
    return pods.container(CONFIGURATION, shared, ours)
