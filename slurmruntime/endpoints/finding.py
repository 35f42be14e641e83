"""Where the slurmrestd of a Controller is, and which key signs tokens for it: pure."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from typing_extensions import override

from slurmruntime.crd import restapis
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.crd.metadata import ObjectMetadata
from slurmruntime.values.faults import Fault, Refused

_MOST_SERVERS: Final = 4
"""Further RestApis of one Controller are not asked: these serve for fail-over."""
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class ControllerName:
    """Names a Controller object, and so a Slurm."""

    namespace: str
    name: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `namespace/name`.

        Raises:
            ValueError: it is written otherwise.
        """
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


class _Named(ObjectStruct, frozen=True):
    name: str = ""


class NamedSecretKey(ObjectStruct, frozen=True):
    """A key of a Secret in the Controller's namespace."""

    name: str
    key: str


class _ControllerSpec(ObjectStruct, frozen=True):
    jwt_key_ref: NamedSecretKey | None = None
    jwt_hs256_key_ref: NamedSecretKey | None = None


class FoundController(ObjectStruct, frozen=True):
    """What is read of a Controller."""

    spec: _ControllerSpec = _ControllerSpec()


class _Service(ObjectStruct, frozen=True):
    port: int | None = None


class _RestApiSpec(ObjectStruct, frozen=True):
    controller_ref: _Named = _Named()
    replicas: int = 1
    service: _Service | None = None


class FoundRestApi(ObjectStruct, frozen=True):
    """What is read of a RestApi."""

    metadata: ObjectMetadata
    spec: _RestApiSpec = _RestApiSpec()


@dataclass(frozen=True, slots=True)
class RestServer:
    """The Service of a RestApi."""

    url: str
    trust: str
    """The ConfigMap with the CAs by which it is known; "" if it speaks plain HTTP."""


@dataclass(frozen=True, slots=True)
class KnownServers:
    """Where requests go, and whom they go to."""

    urls: tuple[str, ...]
    trusted: str
    """The CAs by which those are known that speak TLS, PEM; "" if none does."""


def servers(
    of: ControllerName, rest_apis: Iterable[FoundRestApi]
) -> tuple[RestServer, ...] | Refused:
    """Return where the Services of a Controller's RestApis are, or why there are none.

    Args:
        of: the Controller.
        rest_apis: all of its namespace.
    """
    ours = sorted(
        (
            each
            for each in rest_apis
            if each.spec.controller_ref.name == of.name and each.spec.replicas > 0
        ),
        # One that is deleted serves until the last worker is gone.
        key=lambda each: (each.metadata.deletion_timestamp is not None, each.metadata.name),
    )
    if not ours:
        text = f"Controller {of} has no RestApi with replicas: create one, so that its Slurm can be asked"
        return Refused((Fault("RestApi", text),))
    return tuple(_server(of, our) for our in ours[:_MOST_SERVERS])


def signing_key(of: ControllerName, controller: FoundController) -> NamedSecretKey | Refused:
    """Return which key signs tokens of a Controller's Slurm, or why that is not known."""
    found = controller.spec.jwt_key_ref or controller.spec.jwt_hs256_key_ref
    if found is not None:
        return found
    text = f"Controller {of} names none, so no token can be signed for its Slurm: expected the Secret with slurmctld's jwt_key"
    return Refused((Fault("spec.jwtKeyRef", text),))


def _server(of: ControllerName, rest_api: FoundRestApi) -> RestServer:
    service, name = rest_api.spec.service, rest_api.metadata.name
    port = (service.port if service else None) or restapis.SLURMRESTD_PORT
    where = f"{restapis.service_name(name)}.{of.namespace}.svc:{port}"
    if restapis.speaks_tls(rest_api.metadata.annotations):
        return RestServer(url=f"https://{where}", trust=restapis.tls_name(name))
    return RestServer(url=f"http://{where}", trust="")
