"""A Slurm of pods, with login pods, as its users write it."""

import copy
from collections.abc import Mapping
from typing import Any

from sandbox.operator.serving import CGROUP_CONF, SLURM_CONF

OBJECTS: tuple[dict[str, Any], ...] = (
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "files"},
        "data": {"cgroup.conf": CGROUP_CONF},
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
            "extraConf": SLURM_CONF,
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

CLUSTER: dict[str, Any] = {
    "apiVersion": "slurm-bridge.dev/v1alpha1",
    "kind": "SlurmCluster",
    "metadata": {"name": "site"},
    "spec": {
        "nodes": [{"name": "cpu", "replicas": 1}],
        "config": dict(line.split("=", 1) for line in SLURM_CONF.splitlines()),
        "configFiles": {"cgroup.conf": CGROUP_CONF},
        "state": {"persistent": False},
    },
}
"""A whole Slurm in one object."""

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


def objects(
    files: Mapping[str, str], slurm_conf: str, controller: Mapping[str, Any]
) -> tuple[dict[str, Any], ...]:
    """Return the same objects with further files of Slurm's, lines of slurm.conf, and fields of the Controller."""
    found = copy.deepcopy(OBJECTS)
    for each in found:
        if each["kind"] == "ConfigMap":
            each["data"] |= files
        elif each["kind"] == "Controller":
            each["spec"]["extraConf"] += slurm_conf
            each["spec"] |= controller
    return found


def accounting(host: str, port: int, database: str) -> tuple[dict[str, Any], ...]:
    """Return an Accounting whose database is made there; that server takes any password."""
    password = {"name": "database", "key": "password"}
    storage = {"host": host, "port": port, "database": database, "username": "slurm"}
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


def login_set(name: str, image: str, sssd_conf: str) -> tuple[dict[str, Any], ...]:
    """Return a LoginSet with where its users are.

    Args:
        name: of the LoginSet.
        image: of login.
        sssd_conf: where its users are.
    """
    users = {"name": f"{name}-users", "key": "sssd.conf"}
    return (
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": users["name"]},
            "stringData": {users["key"]: sssd_conf},
        },
        {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "LoginSet",
            "metadata": {"name": name},
            "spec": {
                "controllerRef": {"name": "site"},
                "sssdConfRef": users,
                "login": {"image": image},
            },
        },
    )
