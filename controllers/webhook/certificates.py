"""Our own CA: the leader creates it, publishes it, and signs our services' certificates.

Those are the certificates of webhook, extender and scheduler. Everything is kept in Secrets of our
namespace that the chart creates empty; the CA's keys are in one that no pod mounts. A lease is not
a fence, so every Secret is written only if it is unchanged since it was read: of two leaders, one
gets a conflict and looks again. In every pass, publishing comes before signing.
`slurmruntime.values.certificates` decides what is due when.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from slurmruntime.kube import secrets, webhooks
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import KubeError, NotFound
from slurmruntime.kube.secrets import Secret
from slurmruntime.kube.webhooks import Trust
from slurmruntime.process import liveness, pki
from slurmruntime.process.clock import Clock, pause
from slurmruntime.process.metrics import Metrics
from slurmruntime.process.pki import Pair
from slurmruntime.values import certificates
from slurmruntime.values.certificates import RotationPlan

_CERTIFICATE, _KEY, _TRUSTED = "tls.crt", "tls.key", "ca.crt"

_LOOKS_PER_LIFE = 60
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 60.0
_AGAIN_S = 2.0
"""Retry delay after a failure."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What is signed, for whom, and for how long."""

    release: str
    """The chart's release: the prefix of all names."""
    namespace: str
    hosts: Mapping[str, frozenset[str]]
    """The host names of each part; a part without any is a client."""
    authority_lifetime: timedelta
    lifetime: timedelta

    def secret(self, part: str) -> str:
        """Return the name of the Secret with a part's certificate."""
        return f"{self.release}-{part}-tls"


class Certificates:
    """Signs certificates during one term of leadership."""

    def __init__(self, kube: KubeClient, issued: Issued, *, clock: Clock, metrics: Metrics) -> None:
        self._kube = kube
        self._issued = issued
        self._clock = clock
        self._metrics = metrics
        life_s = issued.lifetime.total_seconds()
        self._pause_s = min(max(life_s / _LOOKS_PER_LIFE, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)

    async def run(self, stop: asyncio.Event) -> None:
        """Check and renew repeatedly until told to stop."""
        with liveness.loop("certificates"):
            while not stop.is_set():
                try:
                    pause_s = 0.0 if await self.look() else self._pause_s
                except KubeError as error:
                    _log.warning("certificates.interrupted", error=str(error))
                    pause_s = min(_AGAIN_S, self._pause_s)
                liveness.turned(pause_s)
                await pause(pause_s, stop)

    async def look(self) -> bool:
        """Do whatever is due; return whether anything was, as the next step may follow from it.

        Raises:
            KubeError: it was not finished; the next look sees what was done.
        """
        now = self._clock.now()
        held = await self._read(f"{self._issued.release}-ca")
        shown = {part: await self._read(self._issued.secret(part)) for part in self._issued.hosts}
        trusts = await self._trusts()
        bundles = [pki.fingerprints(bundle) for trust in trusts for bundle in trust.bundles]
        pairs = _authorities(held)
        plan = certificates.decide(
            now,
            [pki.read_authority(pair) for pair in pairs.values()],
            {part: _certificate(secret, pairs) for part, secret in shown.items()},
            self._issued.hosts,
            published=frozenset.intersection(*bundles) if bundles else frozenset(),
        )
        pairs = await self._keep(held, pairs, plan, now)
        bundle = b"".join(pair.certificate for pair in pairs.values())
        for trust in trusts:
            if set(trust.bundles) != {bundle}:
                await webhooks.publish(self._kube, trust, bundle)
                _log.info("certificates.published", kind=trust.kind.value, authorities=[*pairs])
        for part, secret in shown.items():
            await self._show(part, secret, pairs, plan, now)
        return plan.makes_authority or bool(plan.renewals)

    async def _trusts(self) -> list[Trust]:
        """Return what the API server trusts.

        A policy in it may mutate instead of the webhook, or one call of the webhook do for both.

        Raises:
            NotFound: there is neither configuration.
        """
        found: list[Trust] = []
        absent: NotFound | None = None
        for kind in webhooks.WebhookKind:
            try:
                found.append(await webhooks.get(self._kube, kind, self._issued.release))
            except NotFound as error:
                absent = error
        if absent and not found:
            raise absent
        return found

    async def _read(self, name: str) -> Secret:
        return await secrets.get(self._kube, self._issued.namespace, name)

    async def _keep(
        self, held: Secret, pairs: Mapping[str, Pair], plan: RotationPlan, now: datetime
    ) -> dict[str, Pair]:
        """Keep the remaining CAs, oldest first, and add the new one."""
        kept = {id_: pairs[id_] for id_ in plan.trusted}
        if plan.makes_authority:
            made = pki.make_authority(
                f"{self._issued.release} CA", now=now, lifetime=self._issued.authority_lifetime
            )
            kept[pki.read_authority(made).id] = made
        if kept.keys() != pairs.keys():
            await secrets.change(self._kube, self._issued.namespace, held, pki.stored(kept))
            _log.info("certificates.authorities", now=[*kept], before=[*pairs])
        ends_at = [pki.read_authority(pair).term.ends_at for pair in kept.values()]
        self._metrics.certificates.authority(max(ends_at))
        return kept

    async def _show(
        self,
        part: str,
        secret: Secret,
        pairs: Mapping[str, Pair],
        plan: RotationPlan,
        now: datetime,
    ) -> None:
        """Give a part its certificate and the CAs it is to trust."""
        why = plan.renewals.get(part, "")
        data = dict(secret.data)
        if why:
            pair = pki.issue(
                pairs[plan.signer],
                name=f"{self._issued.release}-{part}",
                hosts=self._issued.hosts[part],
                is_client=not self._issued.hosts[part],
                now=now,
                lifetime=self._issued.lifetime,
            )
            data |= {_CERTIFICATE: pair.certificate, _KEY: pair.key}
        data[_TRUSTED] = b"".join(pair.certificate for pair in pairs.values())
        if data != secret.data:
            await secrets.change(self._kube, self._issued.namespace, secret, data)
            _log.info("certificates.shown", part=part, why=why or "other CAs are trusted")


def _authorities(held: Secret) -> dict[str, Pair]:
    """Return the CAs in the Secret by id. A damaged one counts as missing: another is created."""
    pairs, damaged = pki.restored(held.data)
    for name, error in damaged.items():
        _log.error("certificates.authority_damaged", name=name, error=error)
    return pairs


def _certificate(secret: Secret, pairs: Mapping[str, Pair]) -> certificates.Certificate | None:
    pair = Pair(certificate=secret.data.get(_CERTIFICATE, b""), key=secret.data.get(_KEY, b""))
    return pki.read_certificate(pair, tuple(pairs.values()))
