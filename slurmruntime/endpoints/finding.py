"""Work out where the slurmrestd of a Controller is, and which key signs tokens for it: pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from typing_extensions import override

from slurmruntime.crd import restapis
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values.faults import Fault, Refusal

_MOST_SERVERS: Final = 4
"""RestApis of one Controller that are used, for fail-over; further ones are ignored."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ControllerName:
    """Names a Controller object, and so a Slurm."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `namespace/name`; raise ValueError for any other form."""
        namespace, _, name = text.partition("/")
        if not _NAME.fullmatch(namespace) or not _NAME.fullmatch(name):
            raise ValueError(f"expected NAMESPACE/NAME of a Controller, got {text!r}")
        return cls(namespace, name)

    @property
    def slurmctld_host(self) -> str:
        """The Service of its slurmctld, if that runs in the cluster."""
        return f"{self.name}-controller.{self.namespace}.svc"

    @override
    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


class _NameRef(ObjectStruct, frozen=True):
    name: str = ""


class SecretKeyRef(ObjectStruct, frozen=True):
    """A key of a Secret in the Controller's namespace."""

    name: str
    key: str


class _ControllerSpec(ObjectStruct, frozen=True):
    jwt_key_ref: SecretKeyRef | None = None
    jwt_hs256_key_ref: SecretKeyRef | None = None


class ControllerKeys(ObjectStruct, frozen=True):
    """The part of a Controller that names its keys."""

    spec: _ControllerSpec = _ControllerSpec()


class _Service(ObjectStruct, frozen=True):
    port: int | None = None


class _RestApiSpec(ObjectStruct, frozen=True):
    controller_ref: _NameRef = _NameRef()
    replicas: int = 1
    service: _Service | None = None


class RestApiEndpoint(ObjectStruct, frozen=True):
    """The part of a RestApi that says where it serves."""

    metadata: ObjectMetadata
    spec: _RestApiSpec = _RestApiSpec()


@dataclass(frozen=True, slots=True)
class RestServer:
    """The Service of a RestApi."""

    url: str
    trust: str
    """The ConfigMap with the CAs that sign its certificate; "" if it speaks plain HTTP."""


@dataclass(frozen=True, slots=True)
class ServerList:
    """The servers that requests may go to, and the CAs to trust."""

    urls: tuple[str, ...]
    trusted: str
    """The CAs of the servers that speak TLS, PEM; "" if none does."""


def servers(of: ControllerName, rest_apis: Iterable[RestApiEndpoint]) -> tuple[RestServer, ...]:
    """Return the Services of a Controller's RestApis, given all of its namespace; raise Refusal without any."""
    ours = sorted(
        (
            rest_api
            for rest_api in rest_apis
            if rest_api.spec.controller_ref.name == of.name and rest_api.spec.replicas > 0
        ),
        # A deleted RestApi serves until the last worker is gone.
        key=lambda api: (api.metadata.deletion_timestamp is not None, api.metadata.name),
    )
    if not ours:
        text = f"Controller {of} has no RestApi with replicas: create one, or its Slurm cannot be reached"
        raise Refusal(Fault("RestApi", text))
    return tuple(_server(of, rest_api) for rest_api in ours[:_MOST_SERVERS])


def signing_key(of: ControllerName, controller: ControllerKeys) -> SecretKeyRef:
    """Return which key signs tokens for a Controller's Slurm; raise Refusal if the Controller does not say."""
    key_ref = controller.spec.jwt_key_ref or controller.spec.jwt_hs256_key_ref
    if key_ref is not None:
        return key_ref
    text = f"Controller {of} has none, so no token can be signed for its Slurm: expected the Secret with slurmctld's jwt_key"
    raise Refusal(Fault("spec.jwtKeyRef", text))


def _server(of: ControllerName, rest_api: RestApiEndpoint) -> RestServer:
    service, name = rest_api.spec.service, rest_api.metadata.name
    port = (service.port if service else None) or restapis.SLURMRESTD_PORT
    where = f"{restapis.service_name(name)}.{of.namespace}.svc:{port}"
    if restapis.speaks_tls(rest_api.metadata.annotations):
        return RestServer(url=f"https://{where}", trust=restapis.tls_name(name))
    return RestServer(url=f"http://{where}", trust="")
