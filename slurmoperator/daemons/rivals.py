"""One owner: whether SchedMD's slurm-operator serves the same kinds in this cluster."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Annotated, Final

import msgspec
import structlog
from msgspec import Meta

from slurmoperator.objects.parts import GROUP
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.process import clock
from slurmruntime.process.clock import Clock
from slurmruntime.process.lifetime import StartAfresh
from slurmruntime.values.errors import PeerError

_log = structlog.get_logger(__name__)

LEASE: Final = "slurm-operator"
"""The lease of SchedMD's operator, in the namespace that it runs in (cmd/manager/main.go). Ours has another name."""
_WEBHOOKS: Final = "validatingwebhookconfigurations"
_PAUSE_S: Final = 10.0
_MOST: Final = 500


class _Rule(ObjectStruct, frozen=True):
    api_groups: tuple[str, ...] = ()


class _Webhook(ObjectStruct, frozen=True):
    rules: tuple[_Rule, ...] | None = None


class _Registered(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    webhooks: tuple[_Webhook, ...] | None = None


class _AllRegistered(ObjectStruct, frozen=True):
    items: tuple[_Registered, ...] = ()


class _LeaseSpec(ObjectStruct, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: Annotated[datetime, Meta(tz=True)] | None = None


class _HeldLease(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: _LeaseSpec = _LeaseSpec()


class _AllLeases(ObjectStruct, frozen=True):
    items: tuple[_HeldLease, ...] = ()


_registered = msgspec.json.Decoder(_AllRegistered)
_leases = msgspec.json.Decoder(_AllLeases)


class Rivals:
    """Looks for another operator; nothing is done for the objects while there is one."""

    def __init__(self, kube: KubeClient, now: Clock) -> None:
        self._kube = kube
        self._clock = now
        self._found: str | None = "it is not known yet whether another operator serves these kinds"
        self.alone = asyncio.Event()
        """Set while nobody else serves the kinds."""

    def check(self) -> str | None:
        """Return who serves the kinds besides us; None if nobody does."""
        return self._found

    async def run(self, stop: asyncio.Event) -> None:
        """Look again and again until told to stop.

        Raises:
            StartAfresh: another operator has come. Whatever this process was about to do is left
                undone; the next one waits.
        """
        while not stop.is_set():
            try:
                found = await serving(self._kube, self._clock.now())
            except PeerError as error:
                _log.warning("operator.rivals_unknown", error=str(error))
            else:
                self._note(found)
            await clock.pause(_PAUSE_S, stop)

    def _note(self, found: str | None) -> None:
        if found is not None and found != self._found:
            _log.warning("operator.rival", found=found)
        self._found = found
        if found is None:
            self.alone.set()
        elif self.alone.is_set():
            self.alone.clear()
            raise StartAfresh(f"another operator has come: {found}")


async def serving(kube: KubeClient, now: datetime) -> str | None:
    """Return which other operator serves the kinds now; None if none does.

    Raises:
        KubeError: that could not be read.
    """
    params = {"limit": str(_MOST)}
    where = paths.collection("admissionregistration.k8s.io/v1", _WEBHOOKS)
    answer = await kube.request("GET", where, params=params)
    registered = resource.decoded(_registered, _WEBHOOKS, answer).items
    where = paths.collection("coordination.k8s.io/v1", "leases")
    params = {"limit": str(_MOST), "fieldSelector": f"metadata.name={LEASE}"}
    leases = resource.decoded(
        _leases, "leases", await kube.request("GET", where, params=params)
    ).items
    return next(_rivals(registered, leases, now), None)


def _rivals(
    registered: tuple[_Registered, ...], leases: tuple[_HeldLease, ...], now: datetime
) -> Iterator[str]:
    for each in registered:
        if any(
            GROUP in rule.api_groups for hook in each.webhooks or () for rule in hook.rules or ()
        ):
            yield (
                f"the webhook configuration {each.metadata.name} is registered for {GROUP}: uninstall SchedMD's "
                "slurm-operator first, or delete the configuration if it is a leftover"
            )
    for lease in leases:
        spec = lease.spec
        if not spec.holder_identity or spec.renew_time is None:
            continue
        until = spec.renew_time + timedelta(seconds=spec.lease_duration_seconds or 0)
        if now < until:
            yield (
                f"{spec.holder_identity} holds the lease {lease.metadata.full_name}: stop SchedMD's slurm-operator "
                "first"
            )
