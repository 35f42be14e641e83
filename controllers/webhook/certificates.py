"""Our own CA: the leader creates it, publishes it, and signs our services' certificates.

These are the certificates of webhook, extender and scheduler. Everything is kept in Secrets of our
namespace that the chart creates empty; no pod mounts the one with the CA's keys. A lease is not a
fence, so every Secret is written only if it is unchanged since it was read: of two leaders, one
gets a conflict and starts over. In every pass, publishing comes before signing.
`slurmruntime.values.certificates` decides what is due and when.
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

_CHECKS_PER_LIFETIME = 60
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 60.0
_AGAIN_S = 2.0
"""Retry delay after a failure."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertificateSettings:
    """Which certificates to sign, and for how long."""

    release: str
    """The chart's release name, the prefix of all names."""
    namespace: str
    hosts: Mapping[str, frozenset[str]]
    """The host names of each part; a part without host names is a client."""
    authority_lifetime: timedelta = certificates.AUTHORITY_LIFETIME
    lifetime: timedelta = certificates.LIFETIME

    def secret(self, part: str) -> str:
        """Return the name of the Secret with a part's certificate."""
        return f"{self.release}-{part}-tls"


class Certificates:
    """Signs certificates during one term of leadership."""

    def __init__(
        self, kube: KubeClient, settings: CertificateSettings, *, clock: Clock, metrics: Metrics
    ) -> None:
        self._kube = kube
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        life_s = settings.lifetime.total_seconds()
        self._pause_s = min(max(life_s / _CHECKS_PER_LIFETIME, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)

    async def run(self, stop: asyncio.Event) -> None:
        """Check and renew repeatedly until `stop` is set."""
        with liveness.loop("certificates"):
            while not stop.is_set():
                try:
                    pause_s = 0.0 if await self.reconcile() else self._pause_s
                except KubeError as error:
                    _log.warning("certificates.interrupted", error=str(error))
                    pause_s = min(_AGAIN_S, self._pause_s)
                liveness.turned(pause_s)
                await pause(pause_s, stop)

    async def reconcile(self) -> bool:
        """Do whatever is due; return whether anything was, because another step may follow.

        Raises KubeError if it was not finished; the next pass sees what was done.
        """
        now = self._clock.now()
        authorities = await self._read(f"{self._settings.release}-ca")
        part_secrets = {
            part: await self._read(self._settings.secret(part)) for part in self._settings.hosts
        }
        trusts = await self._trusts()
        bundles = [pki.fingerprints(bundle) for trust in trusts for bundle in trust.bundles]
        pairs = _authorities(authorities)
        plan = certificates.decide(
            now,
            [pki.read_authority(pair) for pair in pairs.values()],
            {part: _certificate(secret, pairs) for part, secret in part_secrets.items()},
            self._settings.hosts,
            published=frozenset.intersection(*bundles) if bundles else frozenset(),
        )
        pairs = await self._update_authorities(authorities, pairs, plan, now)
        bundle = b"".join(pair.certificate for pair in pairs.values())
        for trust in trusts:
            if set(trust.bundles) != {bundle}:
                await webhooks.publish(self._kube, trust, bundle)
                _log.info("certificates.published", kind=trust.kind.value, authorities=[*pairs])
        for part, secret in part_secrets.items():
            await self._update_secret(part, secret, pairs, plan, now)
        return plan.makes_authority or bool(plan.renewals)

    async def _trusts(self) -> list[Trust]:
        """Return the webhook configurations, which contain the CAs that the API server trusts.

        There may be only one: a policy may mutate instead of the webhook, or one call may both mutate and validate.

        Raises:
            NotFound: there is neither configuration.
        """
        trusts: list[Trust] = []
        absent: NotFound | None = None
        for kind in webhooks.WebhookKind:
            try:
                trusts.append(await webhooks.get(self._kube, kind, self._settings.release))
            except NotFound as error:
                absent = error
        if absent and not trusts:
            raise absent
        return trusts

    async def _read(self, name: str) -> Secret:
        return await secrets.get(self._kube, self._settings.namespace, name)

    async def _update_authorities(
        self, stored: Secret, pairs: Mapping[str, Pair], plan: RotationPlan, now: datetime
    ) -> dict[str, Pair]:
        """Keep the remaining CAs, oldest first, and add the new one."""
        remaining = {id_: pairs[id_] for id_ in plan.trusted}
        if plan.makes_authority:
            authority = pki.make_authority(
                f"{self._settings.release} CA", now=now, lifetime=self._settings.authority_lifetime
            )
            remaining[pki.read_authority(authority).id] = authority
        if remaining.keys() != pairs.keys():
            await secrets.change(
                self._kube, self._settings.namespace, stored, pki.to_secret(remaining)
            )
            _log.info("certificates.authorities", now=[*remaining], before=[*pairs])
        ends_at = [pki.read_authority(pair).term.ends_at for pair in remaining.values()]
        self._metrics.certificates.authority(max(ends_at))
        return remaining

    async def _update_secret(
        self,
        part: str,
        secret: Secret,
        pairs: Mapping[str, Pair],
        plan: RotationPlan,
        now: datetime,
    ) -> None:
        why = plan.renewals.get(part, "")
        data = dict(secret.data)
        if why:
            pair = pki.issue(
                pairs[plan.signer],
                name=f"{self._settings.release}-{part}",
                hosts=self._settings.hosts[part],
                is_client=not self._settings.hosts[part],
                now=now,
                lifetime=self._settings.lifetime,
            )
            data |= {_CERTIFICATE: pair.certificate, _KEY: pair.key}
        data[_TRUSTED] = b"".join(pair.certificate for pair in pairs.values())
        if data != secret.data:
            await secrets.change(self._kube, self._settings.namespace, secret, data)
            _log.info("certificates.shown", part=part, why=why or "other CAs are trusted")


def _authorities(secret: Secret) -> dict[str, Pair]:
    """Return the CAs in the Secret by id. A damaged one counts as missing: another is created."""
    pairs, damaged = pki.from_secret(secret.data)
    for name, error in damaged.items():
        _log.error("certificates.authority_damaged", name=name, error=error)
    return pairs


def _certificate(secret: Secret, pairs: Mapping[str, Pair]) -> certificates.Certificate | None:
    pair = Pair(certificate=secret.data.get(_CERTIFICATE, b""), key=secret.data.get(_KEY, b""))
    return pki.read_certificate(pair, tuple(pairs.values()))
