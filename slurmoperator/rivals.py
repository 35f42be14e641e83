"""Checks whether SchedMD's slurm-operator serves the same kinds in this cluster: they may have only one operator."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final

import structlog
from msgspec import Meta

from slurmoperator.objects.parts import GROUP
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import lists, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.process import clock
from slurmruntime.process.clock import Clock
from slurmruntime.process.lifetime import StartAfresh
from slurmruntime.values import numbers
from slurmruntime.values.errors import PEER_ERRORS

_log = structlog.get_logger(__name__)

LEASE: Final = "slurm-operator"
"""The lease of SchedMD's operator, in the namespace that it runs in (its cmd/manager/main.go). Ours has another name."""
THEIRS: Final = "slinky"
"""The namespace that SchedMD's documentation installs it in."""
_PAUSE_S: Final = 10.0


class _Rule(ObjectStruct, frozen=True):
    api_groups: tuple[str, ...] = ()


class _Webhook(ObjectStruct, frozen=True):
    rules: tuple[_Rule, ...] | None = None


class _WebhookConfiguration(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    webhooks: tuple[_Webhook, ...] | None = None


class _LeaseSpec(ObjectStruct, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: Annotated[datetime, Meta(tz=True)] | None = None


class _Lease(ObjectStruct, frozen=True):
    metadata: ObjectMetadata
    spec: _LeaseSpec = _LeaseSpec()


_CONFIGURATIONS: Final = resource.own_kind(
    paths.collection("admissionregistration.k8s.io/v1", "validatingwebhookconfigurations"),
    "ValidatingWebhookConfiguration",
    _WebhookConfiguration,
)
_LEASES: Final = resource.own_kind(
    paths.collection("coordination.k8s.io/v1", "leases"), "Lease", _Lease
)


class Rivals:
    """Polls for another operator. While there is one, this operator does nothing."""

    def __init__(self, kube: KubeClient, now: Clock, *, release: str) -> None:
        """release: the namespace of this operator."""
        self._kube = kube
        self._clock = now
        self._release = release
        self._rival: str | None = "it is not yet known whether another operator serves these kinds"
        self.alone = asyncio.Event()
        """Set while no other operator serves the kinds."""

    def check(self) -> str | None:
        """Return which other operator serves the kinds; None if none does."""
        return self._rival

    async def run(self, stop: asyncio.Event) -> None:
        """Poll until `stop` is set.

        Raises:
            StartAfresh: another operator has started. Whatever this process was about to do is left
                undone; the next process waits.
        """
        while not stop.is_set():
            try:
                rival = await find(self._kube, self._clock.now(), release=self._release)
            except PEER_ERRORS as error:
                _log.warning("operator.rivals_unknown", error=str(error))
            else:
                self._note(rival)
            await clock.pause(_PAUSE_S, stop)

    def _note(self, rival: str | None) -> None:
        if rival is not None and rival != self._rival:
            _log.warning("operator.rival", found=rival)
        self._rival = rival
        if rival is None:
            self.alone.set()
        elif self.alone.is_set():
            self.alone.clear()
            raise StartAfresh(f"another operator has started: {rival}")


async def find(kube: KubeClient, now: datetime, *, release: str) -> str | None:
    """Return which other operator serves the kinds now, and how to stop it; None if none does.

    A lease counts in the namespace of this operator and in that of SchedMD's only: elsewhere, many may create
    one of any name, and would stop this operator for all.

    Raises:
        KubeError: the webhook configurations or leases were not read.
    """
    configurations = await lists.listing(kube, _CONFIGURATIONS)
    only = {"fieldSelector": f"metadata.name={LEASE}"}
    leases = [
        lease
        for namespace in dict.fromkeys((release, THEIRS))
        for lease in await lists.listing(kube, _LEASES, namespace=namespace, params=only)
    ]
    return next(_rivals(configurations, leases, now), None)


def _rivals(
    configurations: Sequence[_WebhookConfiguration], leases: Sequence[_Lease], now: datetime
) -> Iterator[str]:
    for configuration in configurations:
        if any(
            GROUP in rule.api_groups
            for hook in configuration.webhooks or ()
            for rule in hook.rules or ()
        ):
            yield (
                f"the webhook configuration {configuration.metadata.name} is registered for {GROUP}: uninstall SchedMD's "
                "slurm-operator first, or delete the configuration if it is a leftover"
            )
    for lease in leases:
        spec = lease.spec
        if not spec.holder_identity or spec.renew_time is None:
            continue
        until = numbers.moment(spec.renew_time) + timedelta(
            seconds=spec.lease_duration_seconds or 0
        )
        if now < until:
            yield (
                f"{spec.holder_identity} holds the lease {lease.metadata.full_name}: stop SchedMD's slurm-operator "
                "first"
            )
