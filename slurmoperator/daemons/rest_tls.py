"""With what the slurmrestd of a RestApi speaks TLS: what there is of it in Secrets, and what is due."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import msgspec

from slurmoperator.keys import certificates, secrets
from slurmoperator.keys.certificates import WantedCertificate
from slurmoperator.objects.restapi import RestApiObject
from slurmoperator.rendering.access import tls
from slurmoperator.rendering.access.tls import RestTls
from slurmoperator.rendering.site import ControlSite
from slurmruntime.crd import restapis
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube import secrets as kube_secrets
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.secrets import Secret
from slurmruntime.process.clock import Clock
from slurmruntime.values.faults import Fault, Refused, bounded

_LOOKS_PER_LIFE: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthoritiesToKeep:
    """The CAs of a RestApi: in a Secret that no pod has."""

    name: str
    found: Secret | None
    """As it was read; None if it is to be made."""
    data: Mapping[str, bytes] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatheredTls:
    """What is to be presented, and kept first."""

    presented: RestTls
    authorities: AuthoritiesToKeep | None = None
    """What must be written before anybody sees the certificate; None if nothing must."""
    due: timedelta | None = None
    """When to look again, so that nothing ends."""


class _Found(ObjectStruct, frozen=True):
    metadata: ObjectMetadata = ObjectMetadata()
    data: dict[str, str] | None = None


_found = msgspec.json.Decoder(_Found)


class RestCertificates:
    """Reads Secrets, and keeps CAs."""

    def __init__(self, kube: KubeClient, site: ControlSite, clock: Clock) -> None:
        self._kube = kube
        self._site = site
        self._clock = clock

    async def of(self, part: RestApiObject) -> GatheredTls | Refused | None:
        """Return what a RestApi presents, None if it speaks plain HTTP, or all that is wrong with what it names.

        Raises:
            KubeError: what it depends on was not read: look again.
        """
        meta = part.metadata
        if not restapis.speaks_tls(meta.annotations):
            return None
        if named := meta.annotations.get(restapis.TLS_SECRET_ANNOTATION):
            return await self._of_users(part, named)
        ca = f"{restapis.service_name(meta.name)}-ca"
        held = await self._read(meta.namespace, "secrets", ca)
        if held is not None and held.metadata.controller_uid != meta.uid:
            text = "somebody else has made it: delete it, so that the CAs of this RestApi can be kept there"
            return Refused((Fault(f"Secret {ca}", text),))
        shown = await self._read(meta.namespace, "secrets", restapis.tls_name(meta.name))
        public = await self._read(meta.namespace, "configmaps", restapis.tls_name(meta.name))
        site = self._site
        wanted = WantedCertificate(
            authority=f"slurmrestd of {meta.full_name}",
            name=restapis.service_name(meta.name),
            hosts=tls.service_hosts(meta.name, meta.namespace, site.domain),
            lifetime=site.certificate_lifetime,
            authority_lifetime=site.authority_lifetime,
        )
        kept = _bytes(held)
        signed = certificates.kept_or_signed(
            wanted,
            kept,
            _bytes(shown),
            ((public and public.data) or {}).get(restapis.TRUSTED, "").encode(),
            now=self._clock.now(),
        )
        found = None
        if held is not None:
            found = Secret(name=ca, version=held.metadata.resource_version, data=kept)
        changes = kept != signed.authorities
        return GatheredTls(
            presented=RestTls(
                mounted=restapis.tls_name(meta.name), trusted=signed.trusted, made=signed.files
            ),
            authorities=AuthoritiesToKeep(name=ca, found=found, data=signed.authorities)
            if changes
            else None,
            due=site.certificate_lifetime / _LOOKS_PER_LIFE,
        )

    async def keep(self, part: RestApiObject, authorities: AuthoritiesToKeep) -> None:
        """Write the Secret with the CAs, if it is as it was read.

        Raises:
            KubeError: it was not written, has changed since, or nobody knows: look again.
        """
        namespace = part.metadata.namespace
        if authorities.found is not None:
            await kube_secrets.change(self._kube, namespace, authorities.found, authorities.data)
            return
        body = tls.authorities_body(part, authorities.name, authorities.data)
        await secrets.create(self._kube, body.body)

    async def _of_users(self, part: RestApiObject, secret: str) -> GatheredTls | Refused:
        meta = part.metadata
        found = await self._read(meta.namespace, "secrets", secret)
        if found is None:
            text = f"there is no Secret {secret}: create it with tls.crt, tls.key and {restapis.TRUSTED}"
            at = f"metadata.annotations[{restapis.TLS_SECRET_ANNOTATION}]"
            return Refused((Fault(at, text),))
        data = _bytes(found)
        host = f"{restapis.service_name(meta.name)}.{meta.namespace}.svc"
        wrong = bounded(certificates.faults_of_users(secret, data, host, now=self._clock.now()))
        if wrong:
            return Refused(wrong)
        return GatheredTls(presented=RestTls(mounted=secret, trusted=data[restapis.TRUSTED]))

    async def _read(self, namespace: str, plural: str, name: str) -> _Found | None:
        try:
            answer = await self._kube.request(
                "GET", paths.collection("v1", plural, namespace) + paths.of(name)
            )
        except errors.NotFound:
            return None
        return resource.decoded(_found, f"{plural} {namespace}/{name}", answer)


def _bytes(found: _Found | None) -> dict[str, bytes]:
    """Return a Secret's contents; what is no base64 is not there."""
    data: dict[str, bytes] = {}
    for key, value in ((found and found.data) or {}).items():
        try:
            data[key] = base64.b64decode(value, validate=True)
        except binascii.Error:
            continue
    return data
