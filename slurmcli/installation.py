"""Read what the chart installed, as far as the caller may: the services' settings and the cluster's id."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import yaml

from bridge.domain.diagnosis import namespaces
from bridge.domain.model.cores import agents as node_agents
from bridge.domain.model.devices import gres
from bridge.kube import decode
from slurmruntime.kube import lists, objects, paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Forbidden, NotFound
from slurmruntime.kube.kubeconfig.kubeconfig import SAFE
from slurmruntime.values import names, quantities
from slurmruntime.values.ids import ClusterId, KubeNode

if TYPE_CHECKING:
    from bridge.settings.schema import Settings
    from slurmruntime.model.leases import LeaseRecord

OURS = "app.kubernetes.io/name=slurm-bridge"
"""Label selector for every object of the chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """One release of the chart."""

    settings: "Settings | None"
    """None if the caller may not read them, they do not exist, or they have faults."""
    faults: Sequence[str] | None
    """The faults of the settings; None if there is no readable ConfigMap."""
    cluster: ClusterId | None
    """None if the caller may not read it."""

    @classmethod
    async def read(cls, client: KubeClient, namespace: str) -> "Installation":
        """Read the installation in a namespace.

        Raises:
            KubeError: the API server does not answer.
        """
        text = await config_map(client, namespace, component="config", key="config.yaml")
        settings, faults = (None, None) if text is None else _parse(text, namespace)
        return cls(settings=settings, faults=faults, cluster=await _cluster(client, settings))


async def scheduler_name(client: KubeClient, namespace: str) -> str | None:
    """Return our scheduler's name as it is set; None if the settings cannot be read."""
    text = await config_map(client, namespace, component="config", key="config.yaml")
    if text is None:
        return None
    try:
        settings = yaml.load(text, Loader=SAFE) or {}  # noqa: S506  # the loader is safe
        name = settings.get("scheduler_name", names.SCHEDULER_NAME)
        return name if isinstance(name, str) and name else None
    except (yaml.YAMLError, AttributeError):
        return None


async def counting(client: KubeClient, namespace: str) -> tuple[Mapping[str, str], int]:
    """Return extended resource → GRES, and the thousandths of a Kubernetes CPU per Slurm CPU.

    Where the caller cannot read the settings, these are the defaults.
    """
    text = await config_map(client, namespace, component="config", key="config.yaml")
    try:
        document = yaml.load(text or "", Loader=SAFE)  # noqa: S506  # the loader is safe
    except yaml.YAMLError:
        document = None
    devices = _setting(document, "controllers", "gpu_resources")
    milli = _setting(document, "slurm", "milli_cpu_per_cpu")
    return (
        {str(name): str(kind) for name, kind in devices.items()}
        if isinstance(devices, dict)
        else gres.USUAL,
        milli if isinstance(milli, int) and milli > 0 else quantities.MILLI,
    )


def _setting(document: object, section: str, name: str) -> object:
    within = document.get(section) if isinstance(document, dict) else None
    return within.get(name) if isinstance(within, dict) else None


async def agents(client: KubeClient, release: str) -> frozenset[KubeNode] | None:
    """Return the nodes whose node agent is alive; None if the caller may not list its pods.

    Raises:
        KubeError: the API server does not answer.
    """
    params = {"labelSelector": node_agents.SELECTOR}
    try:
        pods = await lists.listing(client, decode.PODS, namespace=release, params=params)
    except Forbidden:
        return None
    return node_agents.alive(pods)


def overdue_s(lease: "LeaseRecord | None", now: datetime, skew_s: float) -> float | None:
    """Return for how long a lease's holder has failed to renew it; None if nobody holds it.

    skew_s: by how much the API server's clock is ahead of ours.
    """
    if lease is None or not lease.holder:
        return None
    return max((now - lease.renewed_at).total_seconds() + skew_s - lease.duration_s, 0.0)


async def excluded_namespaces(client: KubeClient, release: str) -> frozenset[str]:
    """Return the namespaces whose pods Slurm never places, whatever their labels.

    The binding of policy `namespaces` lists them; the chart's default if the caller may not read it.

    Raises:
        KubeError: the API server does not answer.
    """
    path = paths.collection("admissionregistration.k8s.io/v1", "validatingadmissionpolicybindings")
    try:
        body = await client.request("GET", path, params={"labelSelector": OURS})
    except (Forbidden, NotFound):
        return frozenset({release, namespaces.ALWAYS_EXCLUDED})
    excluded = [
        term["values"]
        for binding in msgspec.json.decode(body)["items"]
        if binding["metadata"]["name"].endswith("-namespaces")
        for term in binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
        if term["key"] == "kubernetes.io/metadata.name"
    ]
    return frozenset(excluded[0]) if excluded else frozenset({release, namespaces.ALWAYS_EXCLUDED})


async def config_map(client: KubeClient, namespace: str, *, component: str, key: str) -> str | None:
    """Read a file from a ConfigMap of the chart; None if there is none or the caller may not read it."""
    selector = f"{OURS},app.kubernetes.io/component={component}"
    path = paths.collection("v1", "configmaps", namespace)
    try:
        body = await client.request("GET", path, params={"labelSelector": selector})
    except (Forbidden, NotFound):
        return None
    config_maps = msgspec.json.decode(body)["items"]
    return next((item["data"][key] for item in config_maps if key in item.get("data", {})), None)


def _parse(text: str, namespace: str) -> "tuple[Settings | None, Sequence[str]]":
    from bridge.settings import removed  # noqa: PLC0415  # as above
    from bridge.settings.schema import ENV_PREFIX, Settings  # noqa: PLC0415  # as above
    from slurmruntime.settings import sources  # noqa: PLC0415  # pydantic takes longer than most commands

    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        file.write(text)
        file.flush()
        try:
            read = sources.read(
                Settings,
                config=Path(file.name),
                environment={},
                prefix=ENV_PREFIX,
                secrets_dir=None,
                adapt=lambda values: [*removed.adapt(values, "extender")],
            )
        except sources.Invalid as error:
            place = f"ConfigMap of namespace {namespace}"
            return None, [fault.replace(file.name, place) for fault in error.faults]
    return read, ()


async def _cluster(client: KubeClient, settings: "Settings | None") -> ClusterId | None:
    if settings is not None and settings.cluster_id:
        return ClusterId(settings.cluster_id)
    try:
        return ClusterId((await objects.get_namespace(client, "kube-system")).uid)
    except (Forbidden, NotFound):
        return None
