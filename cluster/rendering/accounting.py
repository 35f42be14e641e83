"""What an Accounting has in the API server: slurmdbd, its configuration, and its Service."""

import base64
from collections.abc import Iterator
from typing import Any, Final

from bridge.domain.faults import Fault, Refused, bounded
from cluster.configuration import slurmdbd_conf
from cluster.configuration.slurm_conf import SLURMDBD_PORT
from cluster.objects import names
from cluster.objects.accounting import AccountingObject
from cluster.objects.parts import KeyOfObject
from cluster.rendering import pods
from cluster.rendering.access import network, services
from cluster.rendering.body import Body, BodyOwner, digest, made
from cluster.rendering.site import SLURM_USER_ID, ControlSite

_APP: Final = "slurmdbd"
_FILE: Final = "slurmdbd.conf"


def accounting_bodies(
    accounting: AccountingObject,
    password: str,
    site: ControlSite,
    *,
    secrets: str = "",
    key_step: int = 0,
) -> tuple[Body, ...] | Refused:
    """Return all that belongs to an Accounting, or all that is wrong with it; nothing if slurmdbd runs elsewhere.

    Args:
        accounting: with what its users want.
        password: of its database, from the Secret that it names. It stands in a Secret among the bodies.
        site: what holds for all clusters.
        secrets: a digest of its keys; another one restarts slurmdbd.
        key_step: of the daemons' key; see `cluster.keys.rings`.
    """
    if accounting.spec.external:
        return ()
    if found := bounded(_faults(accounting, password)):
        return Refused(found)
    owner = BodyOwner(kind="Accounting", metadata=accounting.metadata, app=_APP)
    name = f"{accounting.metadata.name}-accounting"
    conf = slurmdbd_conf.text(accounting, password)
    spec: dict[str, Any] = {
        "replicas": 1,
        "revisionHistoryLimit": 0,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": owner.selecting},
        "serviceName": name,
        "template": pods.template(
            owner,
            _specification(accounting, name, site, key_step=key_step),
            accounting.spec.template,
            restarted_for=digest([conf, secrets]),
            priority_class=site.priority_class,
        ),
    }
    return (
        made(
            owner,
            "Secret",
            name,
            parts={"type": "Opaque", "data": {_FILE: base64.b64encode(conf.encode()).decode()}},
        ),
        services.for_clients(
            owner, name, SLURMDBD_PORT, accounting.spec.service, also=SLURMDBD_PORT
        ),
        *network.network_policy(owner, name, site.network),
        made(owner, "StatefulSet", name, api_version="apps/v1", parts={"spec": spec}),
    )


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
    accounting: AccountingObject, name: str, site: ControlSite, *, key_step: int
) -> dict[str, Any]:
    spec = accounting.spec
    sources: list[dict[str, Any]] = [pods.secret_file(KeyOfObject(name=name, key=_FILE), _FILE)]
    if spec.slurm_key_ref is not None:
        sources.append(pods.slurm_key(spec.slurm_key_ref, key_step))
    if (jwt_key := _jwt_key(accounting)) is not None:
        sources.append(pods.secret_file(jwt_key, "jwt.key"))
    if spec.jwks_key_ref is not None:
        sources.append(pods.config_file(spec.jwks_key_ref, "jwks.json"))
    ours = {
        "image": site.images.slurmdbd,
        "ports": [{"name": _APP, "containerPort": SLURMDBD_PORT, "protocol": "TCP"}],
        "readinessProbe": pods.tcp_probe(_APP),
        "securityContext": dict(pods.AS_SLURM),
        "volumeMounts": [dict(pods.ETC_MOUNT), {"name": "run", "mountPath": "/run"}],
    }
    return {
        **pods.NO_TOKEN,
        # The group makes 0600 a 0640 that slurmdbd can read; it refuses anything wider.
        "securityContext": {**pods.AS_SLURM, "fsGroup": SLURM_USER_ID},
        "containers": [pods.container(_APP, ours, spec.slurmdbd)],
        "volumes": [
            pods.projected(pods.ETC_VOLUME, 0o600, sources),
            {"name": "run", **pods.MEMORY},
        ],
    }
