"""The certificate and the CAs of a RestApi's slurmrestd: read from Secrets, and renewed when due."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from slurmoperator.keys import certificates, secrets
from slurmoperator.keys.certificates import CertificateRequest
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.access import tls
from slurmoperator.rendering.access.tls import RestTls
from slurmoperator.rendering.site import ControlSite
from slurmruntime.crd import restapis
from slurmruntime.kube import secrets as kube_secrets
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.secrets import Secret
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault, Refused, bounded

_CHECKS_PER_LIFETIME: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoritySecret:
    """The Secret with the CAs of a RestApi, which no pod mounts, and its new data."""

    name: str
    existing: Secret | None
    """As it was read; None if it does not exist yet."""
    data: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsPlan:
    """What slurmrestd presents, and what has to be written before that."""

    presented: RestTls
    authorities: AuthoritySecret | None = None
    """To be written before any client sees the certificate; None if it need not be."""
    due: timedelta | None = None
    """When to check again, so that nothing expires."""


@dataclass(frozen=True, slots=True)
class RestCertificates:
    """Plans the certificate of each RestApi, and writes its CAs."""

    kube: KubeClient
    site: ControlSite
    clock: Clock

    async def of(self, part: RestApiObject) -> TlsPlan | Refused | None:
        """Return the plan for a RestApi, None if it speaks plain HTTP, or all faults of the Secret that it refers to.

        Raises:
            KubeError: what it depends on was not read: try again.
        """
        meta = part.metadata
        if not restapis.speaks_tls(meta.annotations):
            return None
        if secret := meta.annotations.get(restapis.TLS_SECRET_ANNOTATION):
            return await self._of_users(part, secret)
        ca = f"{restapis.service_name(meta.name)}-ca"
        stored = await secrets.get(self.kube, "secrets", meta.namespace, ca)
        if stored is not None and stored.metadata.controller_uid != meta.uid:
            text = "it does not belong to this RestApi: delete it, so that the RestApi's CAs can be stored there"
            return Refused((Fault(f"Secret {ca}", text),))
        name = restapis.tls_name(meta.name)
        served = await secrets.get(self.kube, "secrets", meta.namespace, name)
        public = await secrets.get(self.kube, "configmaps", meta.namespace, name)
        site = self.site
        request = CertificateRequest(
            authority=f"slurmrestd of {meta.full_name}",
            name=restapis.service_name(meta.name),
            hosts=tls.service_hosts(meta.name, meta.namespace, site.domain),
            lifetime=site.certificate_lifetime,
            authority_lifetime=site.authority_lifetime,
        )
        old_authorities = stored.values if stored else {}
        signed = certificates.keep_or_sign(
            request,
            old_authorities,
            served.values if served else {},
            ((public and public.data) or {}).get(restapis.TRUSTED, "").encode(),
            now=self.clock.now(),
        )
        authorities = None
        if old_authorities != signed.authorities:
            version = stored.metadata.resource_version if stored else ""
            existing = Secret(name=ca, version=version, data=old_authorities) if stored else None
            authorities = AuthoritySecret(name=ca, existing=existing, data=signed.authorities)
        return TlsPlan(
            presented=RestTls(mounted=name, trusted=signed.trusted, secret_data=signed.files),
            authorities=authorities,
            due=site.certificate_lifetime / _CHECKS_PER_LIFETIME,
        )

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
        await secrets.create(self.kube, body.body)

    async def _of_users(self, part: RestApiObject, secret: str) -> TlsPlan | Refused:
        meta = part.metadata
        existing = await secrets.get(self.kube, "secrets", meta.namespace, secret)
        if existing is None:
            text = f"there is no Secret {secret}: create it with tls.crt, tls.key and {restapis.TRUSTED}"
            at = f"metadata.annotations[{restapis.TLS_SECRET_ANNOTATION}]"
            return Refused((Fault(at, text),))
        data = existing.values
        host = f"{restapis.service_name(meta.name)}.{meta.namespace}.svc"
        wrong = bounded(
            certificates.user_certificate_faults(secret, data, host, now=self.clock.now())
        )
        if wrong:
            return Refused(wrong)
        return TlsPlan(presented=RestTls(mounted=secret, trusted=data[restapis.TRUSTED]))
