"""Certificates of our own CA replaced, CA and all, while pods are created all the time: no admission fails.

A real API server calls two real webhooks, one for each configuration; two leaders sign at once (a lease is no fence) with
nothing but the rights of the chart. What a kubelet does with a mounted Secret is done here. Lives are of seconds.
"""

import asyncio
import base64
import socket
import ssl
import threading
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from typing_extensions import override

from controllers.webhook.certificates import Certificates, CertificateSettings
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import Clock, SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from tests.chart.policed import OUTSIDE, RELEASE, Cluster, apply, make_namespaces, pod, pods
from tests.chart.rendering import Manifest, render
from tests.servers import until
from tests.webhook.running import Addresses, webhook_process

LIFETIME = timedelta(seconds=12)
AUTHORITY_LIFETIME = 3 * LIFETIME
PATIENCE_S = 4 * AUTHORITY_LIFETIME.total_seconds()
KUBELET_S = 0.3
HOSTS = {
    "webhook": frozenset({"127.0.0.1"}),
    "extender": frozenset({"127.0.0.1"}),
    "scheduler": frozenset[str](),
}
CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1"
KINDS = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
NEEDED = {
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "Secret",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
}


@dataclass(slots=True)
class Seen:
    """What the API server, and everybody who connects, has met."""

    admissions: int = 0
    faults: list[str] = field(default_factory=list)
    served: list[tuple[str, str]] = field(default_factory=list)
    """(replica, serial number), as often as looked."""
    issuers: set[bytes] = field(default_factory=set)
    bundles: list[int] = field(default_factory=list)
    """How many CAs were published."""


@pytest.fixture
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    """The chart's roles, empty Secrets and webhook configurations; no policies."""
    suffix = uuid.uuid4().hex[:6]
    ours, bridged = f"{RELEASE}-{suffix}", f"bridged-{suffix}"
    make_namespaces(control_plane, {ours: {}, bridged: {names.ENABLED_LABEL: "true"}})
    control_plane.kubectl(
        "create", "rolebinding", "edit", "--clusterrole=edit", "--user=alice", "-n", bridged
    )
    values = {**OUTSIDE, "tls": {"mode": "managed"}}
    rendered = render(helm, values, release=RELEASE, namespace=ours)
    manifests = [
        m
        for m in rendered.manifests
        if m["kind"] in NEEDED and m["metadata"].get("namespace") in {None, ours, "kube-system"}
    ]
    apply(control_plane, manifests)
    cluster = Cluster(sandbox=control_plane, ours=ours, bridged=bridged, other="")
    try:
        yield cluster
    finally:
        for caller in cluster.callers.values():
            caller.close()
        _remove(control_plane, manifests, cluster)


def _remove(sandbox: Sandbox, manifests: list[Manifest], cluster: Cluster) -> None:
    for kind in KINDS:
        sandbox.admin.delete(f"{CONFIGURATIONS}/{kind}/{RELEASE}")
    for manifest in manifests:
        if manifest["kind"] in {"ClusterRole", "ClusterRoleBinding"}:
            sandbox.kubectl("delete", manifest["kind"], manifest["metadata"]["name"])
    for namespace in (cluster.ours, cluster.bridged):
        sandbox.admin.delete(f"/api/v1/namespaces/{namespace}")


class Ahead(SystemClock):
    """A clock that is an hour ahead, as a machine's may be that has just started."""

    @override
    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


@asynccontextmanager
async def signing(cluster: Cluster, clock: Clock | None = None) -> AsyncIterator[None]:
    """Two leaders of the controllers, as far as certificates go."""
    issued = CertificateSettings(
        release=RELEASE,
        namespace=cluster.ours,
        hosts=HOSTS,
        authority_lifetime=AUTHORITY_LIFETIME,
        lifetime=LIFETIME,
    )
    stop = asyncio.Event()
    opened = KubeClient.open(
        str(cluster.credentials("controllers")), request_timeout_s=10, user_agent="controllers/test"
    )
    async with opened as kube, asyncio.TaskGroup() as group:
        for _ in range(2):
            leader = Certificates(
                kube, issued, clock=clock or SystemClock(), metrics=Metrics("controllers")
            )
            group.create_task(leader.run(stop))
        try:
            yield
        finally:
            stop.set()


@contextmanager
def mounted(cluster: Cluster, part: str, folder: Path) -> Iterator[tuple[str, str]]:
    """A Secret as a kubelet shows it: all files change in one step. Yields when they are there: certificate and key."""
    stop = threading.Event()
    path = f"/api/v1/namespaces/{cluster.ours}/secrets/{RELEASE}-{part}-tls"
    files = ("tls.crt", "tls.key", "ca.crt")

    def show() -> bool:
        secret = api.get(path)
        if not {*files} <= secret.get("data", {}).keys():
            return False
        shown = folder / secret["metadata"]["resourceVersion"]
        if not shown.exists():
            shown.mkdir()
            for file in files:
                (shown / file).write_bytes(base64.b64decode(secret["data"][file]))
            (folder / "new").symlink_to(shown)
            (folder / "new").rename(folder / "now")
        return True

    def go_on() -> None:
        while not stop.wait(KUBELET_S):
            show()

    with Api(cluster.sandbox.kubeconfig) as api:
        while not show():
            stop.wait(KUBELET_S)
        thread = threading.Thread(target=go_on)
        thread.start()
        try:
            yield str(folder / "now" / "tls.crt"), str(folder / "now" / "tls.key")
        finally:
            stop.set()
            thread.join()


def create_pods(cluster: Cluster, alices: Path, seen: Seen, stop: threading.Event) -> None:
    """Alice, creating one pod after another for show (dry run): admission is real, nothing stays."""
    body = pod(ours=False)
    with Api(alices) as alice:
        while not stop.is_set():
            try:
                made = alice.request("POST", pods(cluster.bridged), body, params={"dryRun": "All"})
            except ApiError as error:
                seen.faults.append(f"admission: {error}")
            else:
                seen.admissions += 1
                if {"name": names.GATE} not in made["spec"].get("schedulingGates", []):
                    seen.faults.append("admission: the pod has passed the webhook by")


def shake_hands(cluster: Cluster, replicas: dict[str, Addresses], seen: Seen) -> None:
    """Somebody new connects to each replica, trusting what is published and nothing else."""
    for kind, address in replicas.items():
        configuration = cluster.admin.get(f"{CONFIGURATIONS}/{kind}/{RELEASE}")
        bundle = base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])
        seen.bundles.append(len(x509.load_pem_x509_certificates(bundle)))
        port = int(address.url.rpartition(":")[2])
        try:
            trusting = ssl.create_default_context(cadata=bundle.decode())
            with (
                socket.create_connection(("127.0.0.1", port)) as plain,
                trusting.wrap_socket(plain, server_hostname="127.0.0.1") as connection,
            ):
                shown = x509.load_der_x509_certificate(
                    connection.getpeercert(binary_form=True) or b""
                )
        except ssl.SSLError as error:
            seen.faults.append(f"handshake with {kind}: {error}")
            continue
        key = shown.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        seen.issuers.add(key.key_identifier or b"")
        seen.served.append((kind, str(shown.serial_number)))


@pytest.mark.attack(
    "wait until a certificate is replaced",
    "both CAs are published before one signs",
)
async def test_everything_is_replaced_under_load_without_one_failed_admission(
    cluster: Cluster, tmp_path: Path
) -> None:
    seen, stop = Seen(), threading.Event()
    alices = cluster.sandbox.user_kubeconfig("alice")
    with ExitStack() as stack:
        async with signing(cluster):
            replicas = {}
            for kind in KINDS:
                folder = tmp_path / kind
                folder.mkdir()
                mount = stack.enter_context
                cert_file, key_file = await asyncio.to_thread(
                    mount, mounted(cluster, "webhook", folder)
                )
                replicas[kind] = await asyncio.to_thread(
                    mount, webhook_process(folder, cert_file=cert_file, key_file=key_file)
                )
                lead(cluster, kind, replicas[kind])
            await until(lambda: _passes_both(cluster), 20, sandbox=cluster.sandbox)
            async with asyncio.TaskGroup() as group:
                for _ in range(2):
                    group.create_task(asyncio.to_thread(create_pods, cluster, alices, seen, stop))

                def has_turned_over() -> bool:
                    shake_hands(cluster, replicas, seen)
                    return len(seen.issuers) >= 3 or bool(seen.faults)

                try:
                    await until(has_turned_over, PATIENCE_S, sandbox=cluster.sandbox)
                finally:
                    stop.set()

    assert [] == seen.faults
    assert 2 in seen.bundles
    assert {1, 2} >= set(seen.bundles)
    assert len({serial for _, serial in seen.served}) >= 5
    by_kind = [{serial for kind, serial in seen.served if kind == each} for each in KINDS]
    assert by_kind[0] & by_kind[1], "the replicas have never shown the same certificate"
    assert seen.admissions > 50


@pytest.mark.attack(
    "have a leader whose clock is ahead sign certificates that are not good yet",
    "they and their CA are replaced as soon as a leader with the right time looks",
)
async def test_certificates_of_the_future_are_replaced(cluster: Cluster, tmp_path: Path) -> None:
    with ExitStack() as stack:
        enter = stack.enter_context
        async with signing(cluster, Ahead()):
            cert_file, key_file = await asyncio.to_thread(
                enter, mounted(cluster, "webhook", tmp_path)
            )
            await until(lambda: _is_published(cluster), PATIENCE_S, sandbox=cluster.sandbox)
        running = webhook_process(tmp_path, cert_file=cert_file, key_file=key_file)
        address = await asyncio.to_thread(enter, running)
        for kind in KINDS:
            lead(cluster, kind, address)
        with pytest.raises(ApiError, match="not yet valid"):
            _try(cluster)

        async with signing(cluster):
            await until(lambda: _passes_both(cluster), PATIENCE_S, sandbox=cluster.sandbox)


async def test_where_a_policy_mutates_there_is_one_configuration_to_publish_in(
    cluster: Cluster,
) -> None:
    mutating, _ = (f"{CONFIGURATIONS}/{kind}/{RELEASE}" for kind in KINDS)
    theirs = cluster.admin.get(mutating)
    cluster.admin.delete(mutating)

    try:
        async with signing(cluster):
            await until(lambda: _is_published(cluster), PATIENCE_S, sandbox=cluster.sandbox)
    finally:
        for key in ("resourceVersion", "uid", "managedFields"):
            del theirs["metadata"][key]
        cluster.admin.create(mutating.rpartition("/")[0], theirs)


def lead(cluster: Cluster, kind: str, to: Addresses) -> None:
    """Have the API server ask this webhook."""
    where = to.url + ("/mutate" if kind.startswith("m") else "/validate")
    cluster.admin.request(
        "PATCH",
        f"{CONFIGURATIONS}/{kind}/{RELEASE}",
        [{"op": "replace", "path": "/webhooks/0/clientConfig/url", "value": where}],
        content_type="application/json-patch+json",
    )


def _is_published(cluster: Cluster) -> bool:
    (webhook,) = cluster.admin.get(f"{CONFIGURATIONS}/{KINDS[1]}/{RELEASE}")["webhooks"]
    return bool(webhook["clientConfig"].get("caBundle"))


def _try(cluster: Cluster) -> Manifest:
    return cluster.user().request(
        "POST", pods(cluster.bridged), pod(ours=False), params={"dryRun": "All"}
    )


def _passes_both(cluster: Cluster) -> bool:
    try:
        return bool(_try(cluster)["spec"].get("schedulingGates"))
    except ApiError:
        return False
