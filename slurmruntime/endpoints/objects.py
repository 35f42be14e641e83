"""Read from the API server how to reach a Controller's Slurm."""

import base64
import binascii
from typing import Final

import msgspec

from slurmruntime.crd import restapis
from slurmruntime.crd.fields import ObjectStruct
from slurmruntime.endpoints import finding
from slurmruntime.endpoints.finding import (
    ControllerKeys,
    ControllerName,
    RestApiEndpoint,
    ServerList,
)
from slurmruntime.kube import errors, paths, resource
from slurmruntime.kube.client import KubeClient
from slurmruntime.values.faults import Fault, Refusal, bounded

_GROUP: Final = "slinky.slurm.net/v1beta1"


class _Items(ObjectStruct, frozen=True):
    items: list[msgspec.Raw]


class _Data(ObjectStruct, frozen=True):
    data: dict[str, str] | None = None


_controller = msgspec.json.Decoder(ControllerKeys)
_items = msgspec.json.Decoder(_Items)
_rest_api = msgspec.json.Decoder(RestApiEndpoint)
_data = msgspec.json.Decoder(_Data)


class ControllerObjects:
    """Reads the objects of Controllers, without a cache, as this is rare."""

    def __init__(self, kube: KubeClient) -> None:
        self._kube = kube

    async def servers(self, of: ControllerName) -> ServerList:
        """Return where a Controller's slurmrestd is; an unreadable RestApi does not hide the others.

        A RestApi that speaks TLS and has no CAs yet is left out; it never gets requests in clear.

        Raises:
            Refusal: there is none, or no Controller, which explains it.
            KubeError: the objects could not be read.
        """
        path = paths.collection(_GROUP, "restapis", of.namespace)
        answer = await self._kube.request("GET", path)
        rest_apis: list[RestApiEndpoint] = []
        odd: list[Fault] = []
        for item in resource.decoded(_items, f"RestApis of {of.namespace}", answer).items:
            try:
                rest_apis.append(resource.decoded(_rest_api, "RestApi", item))
            except errors.Malformed as error:
                odd.append(Fault("RestApi", error.message))
        try:
            servers = finding.servers(of, rest_apis)
        except Refusal as refusal:
            await self._controller(of)
            raise Refusal(*bounded((*refusal.faults, *odd))) from refusal
        urls, trusted = [], []
        for server in servers:
            bundle = await self._trusted(of, server.trust) if server.trust else ""
            if bundle is not None:
                urls.append(server.url)
                trusted.append(bundle)
        if not urls:
            missing = ", ".join(server.trust for server in servers)
            text = (
                f"Controller {of}: ConfigMap {missing} has no {restapis.TRUSTED}: see the conditions of its RestApi;"
                f" if it speaks plain HTTP, annotate it with {restapis.TLS_ANNOTATION}={restapis.TLS_OFF}"
            )
            await self._controller(of)
            raise Refusal(Fault("RestApi", text))
        return ServerList(urls=tuple(urls), trusted="".join(trusted))

    async def _trusted(self, of: ControllerName, config_map: str) -> str | None:
        where = paths.collection("v1", "configmaps", of.namespace) + paths.of(config_map)
        try:
            answer = await self._kube.request("GET", where)
        except errors.NotFound:
            return None
        data = resource.decoded(_data, f"ConfigMap {of.namespace}/{config_map}", answer).data or {}
        return data.get(restapis.TRUSTED) or None

    async def _controller(self, of: ControllerName) -> bytes:
        path = paths.collection(_GROUP, "controllers", of.namespace) + paths.of(of.name)
        try:
            return await self._kube.request("GET", path)
        except errors.NotFound as error:
            text = f"Controller {of} does not exist: create it"
            raise Refusal(Fault("Controller", text)) from error

    async def signing_key(self, of: ControllerName) -> bytes:
        """Return the key that signs tokens for a Controller's Slurm.

        Raises:
            Refusal: there is none.
            KubeError: it could not be read.
        """
        answer = await self._controller(of)
        controller = resource.decoded(_controller, f"Controller {of}", answer)
        named = finding.signing_key(of, controller)
        where = paths.collection("v1", "secrets", of.namespace) + paths.of(named.name)
        try:
            answer = await self._kube.request("GET", where)
        except errors.NotFound as error:
            text = (
                f"Secret {of.namespace}/{named.name} is missing: expected slurmctld's jwt_key in it"
            )
            raise Refusal(Fault("spec.jwtKeyRef.name", text)) from error
        data = resource.decoded(_data, f"Secret {of.namespace}/{named.name}", answer).data or {}
        try:
            key = base64.b64decode(data.get(named.key, ""), validate=True)
        except binascii.Error:
            key = b""
        if not key:
            text = f"Secret {of.namespace}/{named.name} has no {named.key}: expected slurmctld's jwt_key"
            raise Refusal(Fault("spec.jwtKeyRef.key", text))
        return key
