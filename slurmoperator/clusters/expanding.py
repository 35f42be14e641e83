"""Expands a SlurmCluster into the objects that it stands for: pure, and the same for the same cluster.

They have the names that `deploy/slurm/chart` gives in a release of the cluster's name, except for login pods, of which there is one set.
"""

import base64
from collections.abc import Iterator
from typing import Any, Final

from slurmoperator.configuration import lines
from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.own.profiles import PROFILE_ANNOTATION, WorkerProfile
from slurmoperator.objects.own.slurm_cluster import (
    ClusterAccounting,
    ClusterNodes,
    ClusterPartition,
    ClusterRestApi,
    SlurmClusterObject,
    SlurmClusterSpec,
)
from slurmoperator.objects.parts import API_VERSION
from slurmoperator.rendering.body import identity, owner_reference
from slurmruntime.crd import restapis
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.model.objects import JsonDict, JsonObject

CLUSTER_LABEL: Final = "slurm-bridge.dev/cluster"
"""On the objects of a SlurmCluster: its name."""
SSSD_CONF: Final = """\
[sssd]
services = nss, pam
domains = files

[domain/files]
id_provider = proxy
proxy_lib_name = files
auth_provider = none
"""
"""The users are those of the image, and none can log in with a password."""
_ALL: Final = ClusterPartition(name="all", default=True)


def expand(cluster: SlurmClusterObject) -> tuple[JsonDict, ...]:
    """Return all objects as server-side apply takes them. Objects come before those that refer to them."""
    return tuple(_objects(cluster))


def extra_objects(metadata: ObjectMetadata) -> tuple[JsonDict, ...]:
    """Return apiVersion, kind and metadata of the objects that are not of the six kinds."""
    return tuple(
        identity(kind, metadata.namespace, name, api_version="v1")
        for kind, name in (("ConfigMap", _files(metadata.name)), ("Secret", _sssd(metadata.name)))
    )


def _objects(cluster: SlurmClusterObject) -> Iterator[JsonDict]:
    spec, name = cluster.spec, cluster.metadata.name
    if spec.config_files:
        yield _owned(cluster, "v1", "ConfigMap", _files(name), data=dict(spec.config_files))
    if spec.login and not spec.login.sssd_conf_ref:
        data = {"sssd.conf": base64.b64encode(SSSD_CONF.encode()).decode()}
        yield _owned(cluster, "v1", "Secret", _sssd(name), type="Opaque", data=data)
    if spec.accounting:
        yield _part(cluster, "Accounting", name, _accounting(cluster, spec.accounting))
    yield _part(cluster, "Controller", name, _controller(cluster))
    if spec.rest_api is None or spec.rest_api.enabled:
        yield _rest_api(cluster)
    for node in spec.nodes:
        node_set = _part(cluster, "NodeSet", f"{name}-worker-{node.name}", _node_set(cluster, node))
        if spec.worker_profile != WorkerProfile.PRIVILEGED.value:
            node_set["metadata"]["annotations"] = {PROFILE_ANNOTATION: spec.worker_profile}
        yield node_set
    if spec.login:
        conf = spec.login.sssd_conf_ref
        login_spec = {
            "controllerRef": {"name": name},
            "sssdConfRef": _key(conf.name, conf.key) if conf else _key(_sssd(name), "sssd.conf"),
            "replicas": 0 if spec.suspend else spec.login.replicas,
            **_container(spec, "login"),
        }
        yield _part(cluster, "LoginSet", f"{name}-login", login_spec)
    for token in spec.tokens:
        token_spec = {
            "username": token.username or token.name,
            "jwtKeyRef": _keys(name)["jwtKeyRef"],
        }
        if token.lifetime:
            token_spec["lifetime"] = token.lifetime
        yield _part(cluster, "Token", f"{name}-{token.name}", token_spec)


def _rest_api(cluster: SlurmClusterObject) -> JsonDict:
    spec, name = cluster.spec, cluster.metadata.name
    rest_api = spec.rest_api or ClusterRestApi()
    rest_api_spec = {
        "controllerRef": {"name": name},
        "replicas": rest_api.replicas,
        **_container(spec, "slurmrestd"),
    }
    body = _part(cluster, "RestApi", name, rest_api_spec)
    if not rest_api.tls:
        body["metadata"]["annotations"] = {restapis.TLS_ANNOTATION: restapis.TLS_OFF}
    elif rest_api.tls_secret:
        body["metadata"]["annotations"] = {restapis.TLS_SECRET_ANNOTATION: rest_api.tls_secret}
    return body


def _accounting(cluster: SlurmClusterObject, accounting: ClusterAccounting) -> JsonDict:
    if address := accounting.external:
        where = {"host": address.host, "port": address.port}
        return {"external": True, "externalConfig": where}
    accounting_spec = {**_keys(cluster.metadata.name), **_container(cluster.spec, "slurmdbd")}
    if storage := accounting.storage:
        password = storage.password_key_ref
        accounting_spec["storageConfig"] = {
            "host": storage.host,
            "port": storage.port,
            "database": storage.database,
            "passwordKeyRef": _key(password.name, password.key),
            **({"username": storage.username} if storage.username else {}),
        }
    return accounting_spec


def _controller(cluster: SlurmClusterObject) -> JsonDict:
    spec, name = cluster.spec, cluster.metadata.name
    settings = [f"{key}={lines.quoted(str(value))}" for key, value in sorted(spec.config.items())]
    controller_spec: JsonDict = {
        **_keys(name),
        **_container(spec, "slurmctld"),
        "extraConf": "".join(f"{line}\n" for line in (*settings, *_partitions(spec))),
        "persistence": {"enabled": False},
    }
    if spec.state is None or spec.state.persistent:
        size = spec.state.size if spec.state else "4Gi"
        controller_spec["persistence"] = {
            "enabled": True,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        }
        if spec.state and spec.state.storage_class_name:
            controller_spec["persistence"]["storageClassName"] = spec.state.storage_class_name
    if spec.accounting:
        controller_spec["accountingRef"] = {"name": name}
    if spec.config_files:
        controller_spec["configFileRefs"] = [{"name": _files(name)}]
    return controller_spec


def _partitions(spec: SlurmClusterSpec) -> Iterator[str]:
    """Yield the partitions' lines. A partition without nodes gets no Nodes=, which Slurm allows for one that is filled later."""
    partitions = spec.partitions or (_ALL,)
    default = next(
        (partition.name for partition in partitions if partition.default), partitions[0].name
    )
    for partition in partitions:
        members = [
            nodes.name
            for nodes in spec.nodes
            if not nodes.partitions or partition.name in nodes.partitions
        ]
        settings = [f"PartitionName={partition.name}"]
        if members:
            settings.append(f"Nodes={','.join(sorted(members))}")
        settings += [
            f"Default={'YES' if partition.name == default else 'NO'}",
            f"MaxTime={partition.max_time}",
        ]
        settings += [
            f"{key}={lines.quoted(str(value))}" for key, value in sorted(partition.config.items())
        ]
        yield " ".join(settings)


def _node_set(cluster: SlurmClusterObject, nodes: ClusterNodes) -> JsonDict:
    spec = cluster.spec
    template = nodes.template
    pod_spec = dict(template.spec or {}) if template else {}
    metadata = template.metadata if template else None
    settings = [f"Gres={nodes.gres}"] if nodes.gres else []
    settings += [f"Features={','.join(nodes.features)}"] if nodes.features else []
    node_set_spec: JsonDict = {
        "controllerRef": {"name": cluster.metadata.name},
        "replicas": 0 if spec.suspend else nodes.replicas,
        "template": {"spec": {"hostname": f"{nodes.name}-", **pod_spec}},
        **_container(spec, "slurmd"),
    }
    if metadata:
        added = {"labels": metadata.labels, "annotations": metadata.annotations}
        node_set_spec["template"]["metadata"] = {
            field: dict(values) for field, values in added.items() if values
        }
    if nodes.resources:
        node_set_spec["slurmd"] = {**node_set_spec.get("slurmd", {}), "resources": nodes.resources}
    if settings:
        node_set_spec["extraConf"] = " ".join(settings)
    return node_set_spec


def _container(spec: SlurmClusterSpec, daemon: str) -> JsonDict:
    if not spec.image:
        return {}
    image = spec.image.replace("{daemon}", daemon).replace("{version}", spec.version)
    return {daemon: {"image": image}}


def _keys(cluster: str) -> JsonDict:
    return {
        "slurmKeyRef": _key(f"{cluster}-auth-slurm", "slurm.key"),
        "jwtKeyRef": _key(f"{cluster}-auth-jwt", "jwt.key"),
    }


def _key(name: str, key: str) -> JsonDict:
    return {"name": name, "key": key}


def _files(cluster: str) -> str:
    return f"{cluster}-config-extra"


def _sssd(cluster: str) -> str:
    return f"{cluster}-sssd-conf"


def _part(cluster: SlurmClusterObject, kind: str, name: str, spec: JsonObject) -> JsonDict:
    return _owned(cluster, API_VERSION, kind, name, spec=spec)


def _owned(
    cluster: SlurmClusterObject, api_version: str, kind: str, name: str, **fields: Any
) -> JsonDict:
    meta, ours = cluster.metadata, slurm_cluster
    owner = owner_reference(ours.KIND, meta, api_version=ours.API_VERSION, blocks=True)
    body = identity(kind, meta.namespace, name, api_version=api_version)
    body["metadata"] |= {"labels": {CLUSTER_LABEL: meta.name}, "ownerReferences": [owner]}
    return {**body, **fields}
