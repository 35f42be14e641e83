"""The objects that a SlurmCluster stands for: pure, and the same for the same cluster.

They are called as those of `deploy/slurm/chart` are for a release of the cluster's name, but for login pods, of which there is one set.
"""

import base64
from collections.abc import Iterator, Mapping
from typing import Any, Final

from slurmoperator.objects.own import slurm_cluster
from slurmoperator.objects.own.profiles import PROFILE_ANNOTATION, WorkerProfile
from slurmoperator.objects.own.slurm_cluster import (
    ClusterNodes,
    ClusterPartition,
    ClusterRestApi,
    SlurmClusterObject,
    SlurmClusterSpec,
)
from slurmoperator.objects.parts import API_VERSION
from slurmruntime.crd import restapis
from slurmruntime.crd.metadata import ObjectMetadata

MADE_FOR_LABEL: Final = "slurm-bridge.dev/cluster"
"""On what is made for a SlurmCluster: its name."""
SSSD_CONF: Final = """\
[sssd]
services = nss, pam
domains = files

[domain/files]
id_provider = proxy
proxy_lib_name = files
auth_provider = none
"""
"""Users are those of the image, and none can log in by a password."""
_ALL: Final = ClusterPartition(name="all", default=True)

Made = dict[str, Any]


def expanded(cluster: SlurmClusterObject) -> tuple[Made, ...]:
    """Return all objects as server-side apply takes them, those first that others name."""
    return tuple(_objects(cluster))


def extras(metadata: ObjectMetadata) -> tuple[Made, ...]:
    """Return apiVersion, kind and metadata of what may be made besides objects of the six kinds."""
    return tuple(
        _named("v1", kind, metadata.namespace, name)
        for kind, name in (
            ("ConfigMap", _files(metadata.name)),
            ("Secret", _sssd(metadata.name)),
        )
    )


def _objects(cluster: SlurmClusterObject) -> Iterator[Made]:
    spec, name = cluster.spec, cluster.metadata.name
    if spec.config_files:
        yield _made(cluster, "v1", "ConfigMap", _files(name), data=dict(spec.config_files))
    if spec.login and not spec.login.sssd_conf_ref:
        data = {"sssd.conf": base64.b64encode(SSSD_CONF.encode()).decode()}
        yield _made(cluster, "v1", "Secret", _sssd(name), type="Opaque", data=data)
    if spec.accounting:
        yield _part(cluster, "Accounting", name, _accounting(cluster))
    yield _part(cluster, "Controller", name, _controller(cluster))
    if spec.rest_api is None or spec.rest_api.enabled:
        yield _rest_api(cluster)
    for node in spec.nodes:
        made = _part(cluster, "NodeSet", f"{name}-worker-{node.name}", _node_set(cluster, node))
        if spec.worker_profile != WorkerProfile.PRIVILEGED.value:
            made["metadata"]["annotations"] = {PROFILE_ANNOTATION: spec.worker_profile}
        yield made
    if spec.login:
        conf = spec.login.sssd_conf_ref
        own = {
            "controllerRef": {"name": name},
            "sssdConfRef": _key(conf.name, conf.key) if conf else _key(_sssd(name), "sssd.conf"),
            "replicas": 0 if spec.suspend else spec.login.replicas,
            **_container(spec, "login"),
        }
        yield _part(cluster, "LoginSet", f"{name}-login", own)
    for token in spec.tokens:
        own = {"username": token.username or token.name, "jwtKeyRef": _keys(name)["jwtKeyRef"]}
        if token.lifetime:
            own["lifetime"] = token.lifetime
        yield _part(cluster, "Token", f"{name}-{token.name}", own)


def _rest_api(cluster: SlurmClusterObject) -> Made:
    spec, name = cluster.spec, cluster.metadata.name
    wanted = spec.rest_api or ClusterRestApi()
    own = {
        "controllerRef": {"name": name},
        "replicas": wanted.replicas,
        **_container(spec, "slurmrestd"),
    }
    made = _part(cluster, "RestApi", name, own)
    if not wanted.tls:
        made["metadata"]["annotations"] = {restapis.TLS_ANNOTATION: restapis.TLS_OFF}
    elif wanted.tls_secret:
        made["metadata"]["annotations"] = {restapis.TLS_SECRET_ANNOTATION: wanted.tls_secret}
    return made


def _accounting(cluster: SlurmClusterObject) -> Made:
    spec = cluster.spec
    accounting = spec.accounting
    if accounting and (address := accounting.external):
        where = {"host": address.host, "port": address.port}
        return {"external": True, "externalConfig": where}
    storage = accounting.storage if accounting else None
    found = {**_keys(cluster.metadata.name), **_container(spec, "slurmdbd")}
    if storage:
        password = storage.password_key_ref
        found["storageConfig"] = {
            "host": storage.host,
            "port": storage.port,
            "database": storage.database,
            "passwordKeyRef": _key(password.name, password.key),
            **({"username": storage.username} if storage.username else {}),
        }
    return found


def _controller(cluster: SlurmClusterObject) -> Made:
    spec, name = cluster.spec, cluster.metadata.name
    lines = [f"{key}={_written(value)}" for key, value in sorted(spec.config.items())]
    found: Made = {
        **_keys(name),
        **_container(spec, "slurmctld"),
        "extraConf": "".join(f"{each}\n" for each in (*lines, *_partitions(spec))),
        "persistence": {"enabled": False},
    }
    if spec.state is None or spec.state.persistent:
        size = spec.state.size if spec.state else "4Gi"
        found["persistence"] = {
            "enabled": True,
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": size}},
        }
        if spec.state and spec.state.storage_class_name:
            found["persistence"]["storageClassName"] = spec.state.storage_class_name
    if spec.accounting:
        found["accountingRef"] = {"name": name}
    if spec.config_files:
        found["configFileRefs"] = [{"name": _files(name)}]
    return found


def _partitions(spec: SlurmClusterSpec) -> Iterator[str]:
    """Yield their lines; a partition without nodes has none, as Slurm has it for a partition that is to be filled."""
    listed = spec.partitions or (_ALL,)
    first = next((each.name for each in listed if each.default), listed[0].name)
    for each in listed:
        members = [
            nodes.name
            for nodes in spec.nodes
            if not nodes.partitions or each.name in nodes.partitions
        ]
        words = [f"PartitionName={each.name}"]
        if members:
            words.append(f"Nodes={','.join(sorted(members))}")
        words += [f"Default={'YES' if each.name == first else 'NO'}", f"MaxTime={each.max_time}"]
        words += [f"{key}={_written(value)}" for key, value in sorted(each.config.items())]
        yield " ".join(words)


def _node_set(cluster: SlurmClusterObject, nodes: ClusterNodes) -> Made:
    spec = cluster.spec
    template = nodes.template
    laid_over = dict(template.spec or {}) if template else {}
    metadata = template.metadata if template else None
    said = [f"Gres={nodes.gres}"] if nodes.gres else []
    said += [f"Features={','.join(nodes.features)}"] if nodes.features else []
    found: Made = {
        "controllerRef": {"name": cluster.metadata.name},
        "replicas": 0 if spec.suspend else nodes.replicas,
        "template": {"spec": {"hostname": f"{nodes.name}-", **laid_over}},
        **_container(spec, "slurmd"),
    }
    if metadata:
        added = {"labels": metadata.labels, "annotations": metadata.annotations}
        found["template"]["metadata"] = {key: dict(each) for key, each in added.items() if each}
    if nodes.resources:
        found["slurmd"] = {**found.get("slurmd", {}), "resources": nodes.resources}
    if said:
        found["extraConf"] = " ".join(said)
    return found


def _container(spec: SlurmClusterSpec, daemon: str) -> Made:
    if not spec.image:
        return {}
    image = spec.image.replace("{daemon}", daemon).replace("{version}", spec.version)
    return {daemon: {"image": image}}


def _written(value: int | str) -> str:
    text = str(value)
    return f'"{text}"' if any(map(str.isspace, text)) else text


def _keys(cluster: str) -> Made:
    return {
        "slurmKeyRef": _key(f"{cluster}-auth-slurm", "slurm.key"),
        "jwtKeyRef": _key(f"{cluster}-auth-jwt", "jwt.key"),
    }


def _key(name: str, key: str) -> Made:
    return {"name": name, "key": key}


def _files(cluster: str) -> str:
    return f"{cluster}-config-extra"


def _sssd(cluster: str) -> str:
    return f"{cluster}-sssd-conf"


def _named(api_version: str, kind: str, namespace: str, name: str) -> Made:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
    }


def _part(cluster: SlurmClusterObject, kind: str, name: str, spec: Mapping[str, Any]) -> Made:
    return _made(cluster, API_VERSION, kind, name, spec=spec)


def _made(
    cluster: SlurmClusterObject, api_version: str, kind: str, name: str, **parts: Any
) -> Made:
    meta = cluster.metadata
    owner = {
        "apiVersion": slurm_cluster.API_VERSION,
        "kind": slurm_cluster.KIND,
        "name": meta.name,
        "uid": meta.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    found = _named(api_version, kind, meta.namespace, name)
    found["metadata"] |= {"labels": {MADE_FOR_LABEL: meta.name}, "ownerReferences": [owner]}
    return {**found, **parts}
