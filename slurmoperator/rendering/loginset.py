"""Renders a LoginSet: pods with sackd, sshd and sssd, and their Service."""

from collections.abc import Iterator, Mapping
from typing import Final

from slurmoperator.objects import names
from slurmoperator.objects.controller import ControllerObject
from slurmoperator.objects.loginset import LoginSetObject
from slurmoperator.rendering import pods, ssh
from slurmoperator.rendering.access import network, services
from slurmoperator.rendering.body import BodyOwner, digest, owned_body, owned_secret
from slurmoperator.rendering.site import (
    SLURM_USER_ID,
    ControlSite,
    configuration_servers,
    controller_faults,
    workers_domain,
)
from slurmruntime.model.objects import JsonDict, JsonObject
from slurmruntime.values.faults import Fault, require_none

LOGIN_APP: Final = "login"
_SACKD: Final = {"name": "sackd-dir", "mountPath": "/run/slurm"}
_SOURCE_MOUNT: Final = {"name": "slurm-config", "mountPath": "/mnt/slurm", "readOnly": True}
_TARGET_MOUNT: Final = {"name": pods.ETC_VOLUME, "mountPath": "/mnt/etc/slurm"}
_PREPARE_SCRIPT: Final = f"""\
set -e
cp -L /mnt/slurm/* /mnt/etc/slurm/
chown {SLURM_USER_ID}:{SLURM_USER_ID} /mnt/etc/slurm/*
chmod 600 /mnt/etc/slurm/*
"""


def host_keys_secret(login_set: str) -> str:
    """Return the name of the Secret with a LoginSet's host keys."""
    return f"{login_set}-ssh-host-keys"


def host_keys_body(login_set: LoginSetObject, keys: Mapping[str, bytes]) -> JsonDict:
    """Return the Secret with all host keys. It is created once: pods with other keys would look like an attack."""
    name = host_keys_secret(login_set.metadata.name)
    return owned_secret(_owner(login_set), name, keys, immutable=True)


def login_set_bodies(
    login_set: LoginSetObject,
    controller: ControllerObject,
    site: ControlSite,
    *,
    secrets: str = "",
    key_step: int = 0,
) -> tuple[JsonObject, ...]:
    """Return all bodies of a LoginSet except its host keys.

    Args:
        secrets: digest of sssd.conf; a change restarts the pods, which ends all sessions.
        key_step: rotation step of the daemons' key, a change of which restarts them, too.

    Raises:
        Refusal: with everything that is wrong with it.
    """
    require_none(_faults(login_set, controller))
    owner = _owner(login_set)
    name = login_set.metadata.name
    data = {
        ssh.SSHD_FILE: ssh.sshd_config(login_set.spec.extra_sshd_config, host_keys=ssh.HOST_KEYS),
        ssh.KEYS_FILE: login_set.spec.root_ssh_authorized_keys,
    }
    strategy = {"strategy": login_set.spec.strategy} if login_set.spec.strategy else {}
    return (
        owned_body(owner, "ConfigMap", _config_map(name), parts={"data": data}),
        services.for_clients(owner, name, ssh.SSH_PORT, login_set.spec.service),
        *network.network_policy(owner, name, site.network),
        pods.workload(
            owner,
            "Deployment",
            name,
            _specification(login_set, controller, site, key_step=key_step),
            login_set.spec.template,
            site=site,
            restarted_for=digest([data, secrets]),
            replicas=login_set.spec.replicas,
            **strategy,
        ),
    )


def _owner(login_set: LoginSetObject) -> BodyOwner:
    return BodyOwner(kind="LoginSet", metadata=login_set.metadata, app=LOGIN_APP)


def _config_map(login_set: str) -> str:
    return f"{login_set}-ssh-config"


def _faults(login_set: LoginSetObject, controller: ControllerObject) -> Iterator[Fault]:
    yield from names.faults("LoginSet", login_set.metadata.name)
    yield from services.faults(login_set.spec.service)
    yield from controller_faults(login_set.spec.controller_ref.name, controller)


def _specification(
    login_set: LoginSetObject,
    controller: ControllerObject,
    site: ControlSite,
    *,
    key_step: int,
) -> JsonDict:
    spec = login_set.spec
    name = login_set.metadata.name
    image = str((spec.login or {}).get("image") or site.images.login)
    prepares = {
        "image": image,
        "command": ["sh", "-c", _PREPARE_SCRIPT],
        "volumeMounts": [dict(_TARGET_MOUNT), dict(_SOURCE_MOUNT)],
    }
    return {
        **pods.NO_TOKEN,
        "dnsConfig": {"searches": [workers_domain(controller, site)]},
        "initContainers": [pods.container("initconf", prepares, spec.initconf)],
        "containers": [_login(login_set, controller, image)],
        "volumes": [
            {"name": pods.ETC_VOLUME, **pods.MEMORY},
            {"name": _SACKD["name"], **pods.MEMORY},
            pods.projected(
                str(_SOURCE_MOUNT["name"]),
                0o600,
                pods.slurm_key(controller.spec.slurm_key_ref, key_step),
            ),
            ssh.host_keys_volume(host_keys_secret(name)),
            ssh.config_volume(_config_map(name), (ssh.SSHD_FILE, ssh.KEYS_FILE)),
            ssh.sssd_volume(spec.sssd_conf_ref),
        ],
    }


def _login(login_set: LoginSetObject, controller: ControllerObject, image: str) -> JsonDict:
    options = f"--conf-server {configuration_servers(controller)}"
    ours = {
        "image": image,
        "env": [{"name": "SACKD_OPTIONS", "value": options}],
        "ports": [{"name": LOGIN_APP, "containerPort": ssh.SSH_PORT, "protocol": "TCP"}],
        "readinessProbe": {"exec": {"command": ["test", "-S", "/run/slurm/sack.socket"]}},
        "volumeMounts": [dict(pods.ETC_MOUNT), dict(_SACKD), *ssh.mounts(of_login=True)],
    }
    return pods.container(LOGIN_APP, ours, login_set.spec.login)
