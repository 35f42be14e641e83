"""Requests to a real API server; and what no healthy one answers, from a server that says what it is told to."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from bridge.kube import decode
from sandbox import kubeconfig, pki
from sandbox.client import Sandbox
from slurmruntime.kube import client as kube_client
from slurmruntime.kube import errors, objects
from slurmruntime.kube.client import KubeClient
from slurmruntime.kube.errors import ConfigurationError
from slurmruntime.kube.kubeconfig.credentials import Credentials
from tests.kube.answers import answering
from tests.kube.bad_network import bad_network
from tests.kube.conftest import Calls
from tests.make.certificates import Authority

AGENT = "slurm-bridge-tests/1"


@pytest.mark.parametrize(
    ("method", "path", "params", "operation"),
    [
        ("GET", "/api/v1/pods", {}, "LIST pods"),
        ("GET", "/api/v1/pods", {"watch": "1"}, "WATCH pods"),
        ("GET", "/api/v1/namespaces/a/pods/b", {}, "GET pods"),
        ("PATCH", "/api/v1/namespaces/a/pods/b/status", {}, "PATCH pods/status"),
        ("GET", "/api/v1/namespaces/kube-system", {}, "GET namespaces"),
        ("GET", "/api/v1/namespaces", {}, "LIST namespaces"),
        ("POST", "/apis/events.k8s.io/v1/namespaces/a/events", {}, "POST events"),
        ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", {}, "PUT leases"),
        ("GET", "/api/v1", {}, "GET /api"),
        ("GET", "/apis/batch/v1", {}, "GET /apis"),
        ("GET", "/readyz", {}, "GET /readyz"),
    ],
)
def test_operations_are_named_without_names_of_objects(
    method: str, path: str, params: dict[str, str], operation: str
) -> None:
    assert operation == kube_client.operation(method, path, params)


async def test_every_call_is_told_with_its_outcome(client: KubeClient, calls: Calls) -> None:
    await objects.get_namespace(client, "default")
    with pytest.raises(errors.NotFound):
        await decode.get_pod(client, "default", "never")

    assert [("GET namespaces", "ok"), ("GET pods", "not_found")] == calls


async def test_who_may_not_is_forbidden(control_plane: Sandbox) -> None:
    async with opened(control_plane.user_kubeconfig("nobody")) as client:
        with pytest.raises(errors.Forbidden, match="nobody"):
            await decode.get_pod(client, "default", "a")


async def test_a_stalled_answer_is_no_answer(control_plane: Sandbox, tmp_path: Path) -> None:
    async with (
        bad_network(control_plane.kubeconfig, tmp_path) as (network, path),
        KubeClient.open(str(path), request_timeout_s=0.3, user_agent=AGENT) as client,
    ):
        network.stall()
        with pytest.raises(errors.Unavailable) as stalled:
            await objects.get_namespace(client, "default")
        network.refuse()
        with pytest.raises(errors.Unavailable) as refused:
            await objects.get_namespace(client, "default")

    assert [None, None] == [stalled.value.status, refused.value.status]
    assert "GET /api/v1/namespaces/default: no answer: " in str(stalled.value)


async def test_a_server_of_another_ca_is_not_trusted(
    control_plane: Sandbox, tmp_path: Path
) -> None:
    other = pki.authority(datetime.now(UTC))  # noqa: TID251  # certificates are for now
    path = kubeconfig.with_certificate(
        tmp_path / "kubeconfig", server=server(control_plane), ca=other.certificate, client=other
    )

    async with opened(path) as client:
        with pytest.raises(errors.Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
            await objects.get_namespace(client, "default")


async def test_a_renewed_token_file_is_read_when_the_old_token_is_refused(
    control_plane: Sandbox, namespace: str, tmp_path: Path
) -> None:
    token_file = tmp_path / "token"
    token_file.write_text("nonsense")
    path = kubeconfig.with_token_file(
        tmp_path / "kubeconfig",
        server=server(control_plane),
        ca=ca_of(control_plane),
        token_file=token_file,
    )

    async with opened(path) as client:
        with pytest.raises(errors.Unauthorized):
            await objects.get_namespace(client, "default")
        token_file.write_text(token(control_plane, namespace))
        with pytest.raises(errors.Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await objects.get_namespace(client, "default")


async def test_a_service_account_is_used_where_there_is_no_kubeconfig(
    control_plane: Sandbox, namespace: str, tmp_path: Path
) -> None:
    address = urlsplit(server(control_plane))
    environ = {
        "KUBERNETES_SERVICE_HOST": str(address.hostname),
        "KUBERNETES_SERVICE_PORT": str(address.port),
    }
    (tmp_path / "ca.crt").write_bytes(ca_of(control_plane))
    (tmp_path / "token").write_text(token(control_plane, namespace))
    credentials = await Credentials.load("", service_account=tmp_path, environ=environ)

    async with KubeClient.open(credentials, request_timeout_s=5, user_agent=AGENT) as client:
        with pytest.raises(errors.Forbidden, match=f"system:serviceaccount:{namespace}:default"):
            await objects.get_namespace(client, "default")


async def test_a_token_is_read_again_every_minute(tmp_path: Path) -> None:
    now = 0.0
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    (tmp_path / "token").write_text("first\n")
    environ = {"KUBERNETES_SERVICE_HOST": "::1", "KUBERNETES_SERVICE_PORT": "443"}
    credentials = await Credentials.load(
        "", service_account=tmp_path, environ=environ, monotonic=lambda: now
    )
    assert "https://[::1]:443" == credentials.connection.server
    (tmp_path / "token").write_text("second")

    now = 59
    assert "Bearer first" == await credentials.authorization()
    now = 60
    assert "Bearer second" == await credentials.authorization()
    (tmp_path / "token").unlink()
    now = 120
    assert "Bearer second" == await credentials.authorization()


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        pytest.param(None, "FileNotFoundError", id="missing"),
        pytest.param("", "TypeError", id="empty"),
        pytest.param("{", "ParserError", id="no YAML"),
        pytest.param("apiVersion: v1\nkind: Config\n", "ConfigException", id="no context"),
        pytest.param("[1, 2]", "TypeError", id="a list"),
    ],
)
async def test_a_bad_kubeconfig_is_named_with_what_was_expected(
    tmp_path: Path, content: str | None, complaint: str
) -> None:
    path = tmp_path / "kubeconfig"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConfigurationError) as refusal:
        async with opened(path):
            pass

    assert f"kubeconfig {path}: {complaint}: " in str(refusal.value)
    assert "expected a readable kubeconfig in kubernetes.kubeconfig" in str(refusal.value)


async def test_outside_a_cluster_a_kubeconfig_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match='or "" there when running in a pod'):
        await Credentials.load("", service_account=tmp_path, environ={})


async def test_bad_certificates_are_named(control_plane: Sandbox, tmp_path: Path) -> None:
    path = kubeconfig.with_token_file(
        tmp_path / "kubeconfig",
        server=server(control_plane),
        ca=b"no certificate",
        token_file=tmp_path / "token",
    )
    (tmp_path / "token").write_text("x")

    with pytest.raises(ConfigurationError, match="expected PEM files"):
        async with opened(path):
            pass


async def test_what_stands_in_between_is_told_from_the_api_server() -> None:
    """A load balancer's page, its redirect, and an answer that breaks off."""

    async def busy(_: web.Request) -> web.Response:
        return web.Response(status=429, headers={"Retry-After": "3"}, text="<html>slow</html>")

    async def elsewhere(_: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": "https://login.example.com"})

    async def broken(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async def page(_: web.Request) -> web.Response:
        return web.Response(text="<html>welcome</html>", content_type="text/html")

    pods = "/api/v1/namespaces/default/pods"
    routes = {
        f"{pods}/busy": busy,
        f"{pods}/away": elsewhere,
        f"{pods}/broken": broken,
        f"{pods}/page": page,
    }
    async with answering(routes) as client:
        with pytest.raises(errors.TooManyRequests) as refusal:
            await decode.get_pod(client, "default", "busy")
        assert 3 == refusal.value.retry_after_s
        with pytest.raises(errors.Unavailable, match="302"):
            await decode.get_pod(client, "default", "away")
        with pytest.raises(errors.Unavailable, match="no answer"):
            await decode.get_pod(client, "default", "broken")
        with pytest.raises(errors.Malformed, match="READ Pod: Malformed: JSON is malformed"):
            await decode.get_pod(client, "default", "page")


@asynccontextmanager
async def opened(path: Path) -> AsyncIterator[KubeClient]:
    async with KubeClient.open(str(path), request_timeout_s=5, user_agent=AGENT) as client:
        yield client


def server(control_plane: Sandbox) -> str:
    return str(_cluster(control_plane)["server"])


def ca_of(control_plane: Sandbox) -> bytes:
    return base64.b64decode(_cluster(control_plane)["certificate-authority-data"])


def token(control_plane: Sandbox, namespace: str) -> str:
    return control_plane.kubectl("create", "token", "default", "-n", namespace)


def _cluster(control_plane: Sandbox) -> dict[str, str]:
    cluster: dict[str, str] = json.loads(control_plane.kubeconfig.read_text())["clusters"][0][
        "cluster"
    ]
    return cluster
