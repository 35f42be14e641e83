"""Gather the facts about slurm-operator for `doctor` and `cluster`."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

import msgspec

from slurmcli import installation
from slurmcli.clusters import reading
from slurmoperator import rivals
from slurmoperator.diagnosis import checks
from slurmoperator.diagnosis.checks import OperatorFacts
from slurmoperator.objects.definitions import definition
from slurmoperator.objects.kinds import KINDS, SLURM_CLUSTER
from slurmoperator.objects.labels import MANAGER
from slurmruntime.kube import paths
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import Forbidden, NotFound
from slurmruntime.kube.leases import KubeLeases

T = TypeVar("T")

_POLICY: Final = f"{MANAGER}-namespaces"
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_DEFINITIONS: Final = paths.collection("apiextensions.k8s.io/v1", "customresourcedefinitions")


async def examine(client: KubeClient, release: str, *, skew_s: float) -> OperatorFacts:
    """Gather everything the doctor checks; leave out what the caller may not read.

    Args:
        skew_s: by how much the API server's clock is ahead of ours.

    Raises:
        KubeError: the API server does not answer.
    """
    installed = await _readable(_differing(client))
    if not installed:
        return OperatorFacts(release=release, definitions=installed)
    now = datetime.now(UTC)  # noqa: TID251  # a person runs a command now
    is_read, age_s = await _lease(client, release, skew_s)
    rival, label = await asyncio.gather(
        _readable(_rival(client, now, release)), _readable(_label(client))
    )
    return OperatorFacts(
        release=release,
        definitions=installed,
        is_lease_read=is_read,
        lease_age_s=age_s,
        rival=rival,
        objects=await reading.objects(client),
        label=label,
        labelled=await _readable(_labelled(client, label)) if label else None,
    )


async def summarize(client: KubeClient, release: str) -> str:
    """Say in a few words whether slurm-operator runs; "" if the caller may not read its lease.

    Raises:
        KubeError: the API server does not answer.
    """
    is_read, age_s = await _lease(client, release, 0.0)
    if not is_read:
        return ""
    if age_s is None:
        return f"not running in namespace {release}: run kubectl slurm doctor"
    return f"silent for {age_s:.0f} s: run kubectl slurm doctor" if age_s > 0 else "running"


async def _lease(client: KubeClient, release: str, skew_s: float) -> tuple[bool, float | None]:
    """Return whether the lease may be read, and by how many seconds it has expired; None without a holder."""
    try:
        lease = await KubeLeases(client, release).get(MANAGER)
    except Forbidden:
        return False, None
    now = datetime.now(UTC)  # noqa: TID251  # as above
    return True, installation.overdue_s(lease, now, skew_s)


async def _differing(client: KubeClient) -> Mapping[str, Sequence[str]]:
    differing: dict[str, Sequence[str]] = {}
    for kind in (*KINDS, SLURM_CLUSTER):
        try:
            body = await client.request("GET", _DEFINITIONS + paths.of(kind.definition_name))
        except NotFound:
            continue
        differences = checks.differences(msgspec.json.decode(body), definition(kind))
        differing[kind.definition_name] = tuple(differences)
    return differing


async def _rival(client: KubeClient, now: datetime, release: str) -> str:
    return await rivals.find(client, now, release=release) or ""


async def _label(client: KubeClient) -> str:
    """Return the label that the policy requires of a namespace with a Slurm; "" if there is no such policy."""
    path = paths.collection(_ADMISSION, "validatingadmissionpolicybindings") + paths.of(_POLICY)
    try:
        binding = await _get(client, path)
    except NotFound:
        return ""
    terms = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    return str(terms[0]["key"])


async def _labelled(client: KubeClient, label: str) -> Sequence[str]:
    namespaces = await _get(client, "/api/v1/namespaces", labelSelector=f"{label}=true")
    return [item["metadata"]["name"] for item in namespaces["items"]]


async def _get(client: KubeClient, path: str, **params: str) -> Any:
    return msgspec.json.decode(await client.request("GET", path, params=params))


async def _readable(answer: Awaitable[T]) -> T | None:
    """Return None if the caller may not read it."""
    try:
        return await answer
    except Forbidden:
        return None
