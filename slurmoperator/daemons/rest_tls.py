"""The certificate and the CAs of a RestApi's slurmrestd: read from Secrets, and renewed when due."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from slurmoperator.keys import certificates, secrets
from slurmoperator.keys.certificates import CertificateBundle, CertificateRequest
from slurmoperator.keys.secrets import DataObject
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.access import tls
from slurmoperator.rendering.access.tls import RestTls
from slurmoperator.rendering.site import ControlSite
from slurmruntime.crd import restapis
from slurmruntime.kube import secrets as kube_secrets
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.secrets import Secret
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault, Refusal, require_none

_CHECKS_PER_LIFETIME: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoritySecret:
    """The Secret with the CAs of a RestApi, which no pod mounts, and its new data."""

    name: str
    existing: Secret | None
    data: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPlan:
    """What slurmrestd presents, and what has to be written before that."""

    presented: RestTls
    authorities: AuthoritySecret | None = None
    """To be written before any client sees the certificate; None if it need not be."""
    due: timedelta | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFacts:
    """What a RestApi's slurmrestd may present."""

    authorities_name: str = ""
    """The Secret with our CAs; "" if the certificate is a user's."""
    stored: DataObject | None = field(default=None, repr=False)
    """That Secret; None if it does not exist."""
    signed: CertificateBundle | None = field(default=None, repr=False)
    """The certificate of ours; None if that Secret belongs to others."""
    users: DataObject | None = field(default=None, repr=False)
    """The Secret with a user's certificate; None if it does not exist."""


def plan_tls(part: RestApiObject, facts: TlsFacts, site: ControlSite, now: datetime) -> TlsPlan:
    """Return what a slurmrestd presents: pure.

    Raises:
        Refusal: with all faults of the Secret that the RestApi refers to.
    """
    meta = part.metadata
    if secret := meta.annotations.get(restapis.TLS_SECRET_ANNOTATION):
        return _plan_users(part, secret, facts.users, now)
    if facts.signed is None:
        text = "it does not belong to this RestApi: delete it, so that the RestApi's CAs can be stored there"
        raise Refusal(Fault(f"Secret {facts.authorities_name}", text))
    name, stored = facts.authorities_name, facts.stored
    old = stored.values if stored else {}
    authorities = None
    if old != facts.signed.authorities:
        version = stored.metadata.resource_version if stored else ""
        existing = Secret(name=name, version=version, data=old) if stored else None
        authorities = AuthoritySecret(name=name, existing=existing, data=facts.signed.authorities)
    return TlsPlan(
        presented=RestTls(
            mounted=restapis.tls_name(meta.name),
            trusted=facts.signed.trusted,
            secret_data=facts.signed.files,
        ),
        authorities=authorities,
        due=site.certificate_lifetime / _CHECKS_PER_LIFETIME,
    )


def _plan_users(
    part: RestApiObject, secret: str, existing: DataObject | None, now: datetime
) -> TlsPlan:
    if existing is None:
        text = (
            f"there is no Secret {secret}: create it with tls.crt, tls.key and {restapis.TRUSTED}"
        )
        raise Refusal(Fault(f"metadata.annotations[{restapis.TLS_SECRET_ANNOTATION}]", text))
    data = existing.values
    host = f"{restapis.service_name(part.metadata.name)}.{part.metadata.namespace}.svc"
    require_none(certificates.user_certificate_faults(secret, data, host, now=now))
    return TlsPlan(presented=RestTls(mounted=secret, trusted=data[restapis.TRUSTED]))


@dataclass(frozen=True, slots=True)
class RestCertificates:
    """Reads the certificate of each RestApi, has it signed while it is ours, and writes its CAs."""

    kube: KubeClient
    site: ControlSite
    clock: Clock

    async def read(self, part: RestApiObject) -> TlsFacts | None:
        """Return what slurmrestd may present, None for plain HTTP. A certificate that is due is signed here: keys are random, so no part of a plan.

        Raises:
            KubeError: what it depends on was not read: try again.
        """
        meta = part.metadata
        if not restapis.speaks_tls(meta.annotations):
            return None
        if secret := meta.annotations.get(restapis.TLS_SECRET_ANNOTATION):
            return TlsFacts(users=await secrets.get(self.kube, "secrets", meta.namespace, secret))
        ca = f"{restapis.service_name(meta.name)}-ca"
        stored = await secrets.get(self.kube, "secrets", meta.namespace, ca)
        if stored is not None and stored.metadata.controller_uid != meta.uid:
            return TlsFacts(authorities_name=ca, stored=stored)
        name = restapis.tls_name(meta.name)
        served = await secrets.get(self.kube, "secrets", meta.namespace, name)
        public = await secrets.get(self.kube, "configmaps", meta.namespace, name)
        request = CertificateRequest(
            authority=f"slurmrestd of {meta.full_name}",
            name=restapis.service_name(meta.name),
            hosts=tls.service_hosts(meta.name, meta.namespace, self.site.domain),
            lifetime=self.site.certificate_lifetime,
            authority_lifetime=self.site.authority_lifetime,
        )
        signed = certificates.keep_or_sign(
            request,
            stored.values if stored else {},
            served.values if served else {},
            ((public and public.data) or {}).get(restapis.TRUSTED, "").encode(),
            now=self.clock.now(),
        )
        return TlsFacts(authorities_name=ca, stored=stored, signed=signed)

    async def write(self, part: RestApiObject, authorities: AuthoritySecret) -> None:
        """Write the Secret with the CAs, if it is still as it was read.

        Raises:
            KubeError: it has changed, was not written, or may or may not have been: try again.
        """
        namespace = part.metadata.namespace
        if authorities.existing is not None:
            await kube_secrets.change(self.kube, namespace, authorities.existing, authorities.data)
            return
        body = tls.authorities_body(part, authorities.name, authorities.data)
        await secrets.create(self.kube, body)
