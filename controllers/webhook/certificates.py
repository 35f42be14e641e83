"""Our own CA: the leader makes it, publishes it, and signs what webhook, extender and scheduler show each other.

All of it lives in Secrets of our namespace that the chart has made, empty; the CA's keys in one that no pod mounts. A
lease is no fence, so every Secret is written only as it was read: of two leaders one meets a conflict and looks again.
Publishing comes before signing in every pass. What is due when is `bridge.domain.certificates`' to say.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog

from bridge.domain import certificates
from bridge.domain.certificates import RotationPlan
from bridge.kube import secrets, webhooks
from bridge.kube.client import KubeClient
from bridge.kube.errors import KubeError, NotFound
from bridge.kube.secrets import Secret
from bridge.kube.webhooks import Trust
from bridge.process import liveness, pki
from bridge.process.clock import Clock, pause
from bridge.process.metrics import Metrics
from bridge.process.pki import Pair

_CERTIFICATE, _KEY, _TRUSTED = "tls.crt", "tls.key", "ca.crt"

_LOOKS_PER_LIFE = 60
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 60.0
_AGAIN_S = 2.0
"""After a failure."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What is signed, for whom, and for how long."""

    release: str
    """The chart's release: the beginning of all names."""
    namespace: str
    hosts: Mapping[str, frozenset[str]]
    """Of each part the names it is called by; a part without any is a client."""
    authority_lifetime: timedelta
    lifetime: timedelta

    def secret(self, part: str) -> str:
        """Where the certificate of a part is."""
        return f"{self.release}-{part}-tls"


class Certificates:
    """One leadership's signing."""

    def __init__(self, kube: KubeClient, issued: Issued, *, clock: Clock, metrics: Metrics) -> None:
        self._kube = kube
        self._issued = issued
        self._clock = clock
        self._metrics = metrics
        life_s = issued.lifetime.total_seconds()
        self._pause_s = min(max(life_s / _LOOKS_PER_LIFE, _SHORTEST_PAUSE_S), _LONGEST_PAUSE_S)

    async def run(self, stop: asyncio.Event) -> None:
        """Look again and again until told to stop."""
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
        """Do whatever is due; returns whether anything was, as the next step may follow from it.

        Raises:
            KubeError: it was not finished; what was done is seen at the next look.
        """
        now = self._clock.now()
        held = await self._read(f"{self._issued.release}-ca")
        shown = {part: await self._read(self._issued.secret(part)) for part in self._issued.hosts}
        trusts = [trust for kind in webhooks.WebhookKind if (trust := await self._trust(kind))]
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

    async def _trust(self, kind: webhooks.WebhookKind) -> Trust | None:
        """None where a policy in the API server does the mutating."""
        try:
            return await webhooks.get(self._kube, kind, self._issued.release)
        except NotFound:
            if kind is webhooks.WebhookKind.VALIDATING:
                raise
            return None

    async def _read(self, name: str) -> Secret:
        return await secrets.get(self._kube, self._issued.namespace, name)

    async def _keep(
        self, held: Secret, pairs: Mapping[str, Pair], plan: RotationPlan, now: datetime
    ) -> dict[str, Pair]:
        """The CAs that are left, the oldest first, and the one that is made."""
        kept = {id_: pairs[id_] for id_ in plan.trusted}
        if plan.makes_authority:
            made = pki.make_authority(
                f"{self._issued.release} CA", now=now, lifetime=self._issued.authority_lifetime
            )
            kept[pki.read_authority(made).id] = made
        if kept.keys() != pairs.keys():
            data = {
                f"{id_}.{end}": content
                for id_, pair in kept.items()
                for end, content in (("crt", pair.certificate), ("key", pair.key))
            }
            await secrets.change(self._kube, self._issued.namespace, held, data)
            _log.info("certificates.authorities", now=[*kept], before=[*pairs])
        ends_at = [pki.read_authority(pair).term.ends_at for pair in kept.values()]
        self._metrics.authority(max(ends_at))
        return kept

    async def _show(
        self,
        part: str,
        secret: Secret,
        pairs: Mapping[str, Pair],
        plan: RotationPlan,
        now: datetime,
    ) -> None:
        """Give a part its certificate and those it is to trust."""
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
    """The CAs in the Secret, by their ids. What is damaged is as good as gone: another one is made."""
    pairs: dict[str, Pair] = {}
    for name in sorted(held.data):
        stem, _, end = name.rpartition(".")
        key = held.data.get(f"{stem}.key")
        if end != "crt" or key is None:
            continue
        pair = Pair(certificate=held.data[name], key=key)
        try:
            pairs[pki.read_authority(pair).id] = pair
        except ValueError as error:
            _log.error("certificates.authority_damaged", name=stem, error=str(error))
    return pairs


def _certificate(secret: Secret, pairs: Mapping[str, Pair]) -> certificates.Certificate | None:
    pair = Pair(certificate=secret.data.get(_CERTIFICATE, b""), key=secret.data.get(_KEY, b""))
    return pki.read_certificate(pair, tuple(pairs.values()))
