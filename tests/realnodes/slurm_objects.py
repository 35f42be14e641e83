"""A Slurm of pods, as its users write it, and a login pod, as slurm-operator renders it."""

from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from bridge.domain.faults import Refused
from cluster.objects.controller import ControllerObject
from cluster.objects.loginset import LoginSetObject
from cluster.rendering.loginset import host_keys_body, login_set_bodies
from cluster.rendering.site import ControlSite, SlurmImages
from cluster.rendering.ssh import HOST_KEYS

THIS_MACHINE = """\
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
"""
"""Its cgroups are of version 1, and containers have none mounted."""
OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"cgroup.conf": "CgroupPlugin=disabled\n"},
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "Controller",
        "metadata": {"name": "site"},
        "spec": {
            "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
            "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
            "persistence": {"enabled": False},
            "accountingRef": {"name": "site"},
            "configFileRefs": [{"name": "files"}],
            "extraConf": THIS_MACHINE,
        },
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "RestApi",
        "metadata": {"name": "site"},
        "spec": {"replicas": 1, "controllerRef": {"name": "site"}},
    },
    {
        "apiVersion": "slinky.slurm.net/v1beta1",
        "kind": "NodeSet",
        "metadata": {"name": "workers"},
        "spec": {
            "replicas": 2,
            "controllerRef": {"name": "site"},
            "partition": {"enabled": True, "config": "Default=YES"},
        },
    },
)


_PRIVATE = Ed25519PrivateKey.generate()
HOST_KEY_TEXT = _PRIVATE.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH).decode()
HOST_KEY = {
    "": _PRIVATE.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
    ".pub": HOST_KEY_TEXT.encode(),
}
"""sshd looks into a file for the kind of a key, not at its name."""


USERS_OF_FILES = """\
[sssd]
services = nss, pam
domains = files

[domain/files]
id_provider = proxy
proxy_lib_name = files
auth_provider = none
"""
"""sssd.conf: users are those of the image's own files, by way of sssd."""


def accounting(host: str, port: int) -> tuple[dict[str, Any], ...]:
    """Return an Accounting whose database is there; that one takes any password."""
    password = {"name": "database", "key": "password"}
    storage = {"host": host, "port": port, "database": "in_pods", "username": "slurm"}
    return (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": "database"},
            "stringData": {"password": "any"},
        },
        {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "Accounting",
            "metadata": {"name": "site"},
            "spec": {
                "slurmKeyRef": {"name": "site-auth-slurm", "key": "slurm.key"},
                "jwtKeyRef": {"name": "site-auth-jwt", "key": "jwt.key"},
                "storageConfig": {**storage, "passwordKeyRef": password},
            },
        },
    )


def login_bodies(
    name: str, controller_body: dict[str, Any], image: str, sssd_conf: str
) -> list[dict[str, Any]]:
    """Return all that belongs to a LoginSet, with its host keys.

    Args:
        name: of the LoginSet.
        controller_body: its Controller, as the API server has it.
        image: of login.
        sssd_conf: where its users are.
    """
    namespace = controller_body["metadata"]["namespace"]
    controller = msgspec.convert(controller_body, ControllerObject, strict=False)
    login_set = msgspec.convert(
        {
            "metadata": {"name": name, "namespace": namespace, "uid": "none"},
            "spec": {
                "controllerRef": {"name": "site"},
                "sssdConfRef": {"name": f"{name}-users", "key": "sssd.conf"},
            },
        },
        LoginSetObject,
        strict=False,
    )
    images = {name: f"registry.test/{name}" for name in SlurmImages.__annotations__}
    site = ControlSite(images=SlurmImages(**{**images, "login": image}))
    keys = {f"{file}{end}": text for file in HOST_KEYS for end, text in HOST_KEY.items()}
    bodies = login_set_bodies(login_set, controller, site)
    assert not isinstance(bodies, Refused)
    users = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": f"{name}-users", "namespace": namespace},
        "stringData": {"sssd.conf": sssd_conf},
    }
    owned = [dict(each.body) for each in (*bodies, host_keys_body(login_set, keys))]
    for body in owned:
        # Of a LoginSet that is not there, garbage collection would delete it all.
        del body["metadata"]["ownerReferences"]
    return [users, *owned]
