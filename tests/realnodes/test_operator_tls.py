"""slurmrestd by TLS on real kubelets: refused in clear, verified, and followed while its certificate changes and jobs run."""

import base64
import socket
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509

from sandbox.image.slurm import SlurmImage
from slurmruntime.process import pki
from slurmruntime.process.clock import SystemClock
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

HOST = f"site-restapi.{NAMESPACE}.svc"
PORT = 6820
BEHIND = 6821
MOUNTED_S = 240.0
"""A kubelet refreshes mounted Secrets about once a minute; twice that, and haproxy's reload, on a busy machine."""
ANSWERS_S = 20.0
REQUEST = f"GET /slurm/v0.0.44/ping/ HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()
"""Without a token: what matters is who answers."""
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
CONFIG_MAP = f"/api/v1/namespaces/{NAMESPACE}/configmaps/site-restapi-tls"


@pytest.fixture(scope="module")
def in_pods(slurm_images: tuple[SlurmImage, ...]) -> Iterator[InPods]:
    with slurm_in_pods(slurm_images) as found:
        wait_until(lambda: found.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
        yield found


def address(in_pods: InPods) -> str:
    """The pod's, or one of them while there are two."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    found = in_pods.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmrestd")
    for pod in found["items"]:
        if "podIP" in pod["status"]:  # a new one has none at first
            return str(pod["status"]["podIP"])
    raise ConnectionError("no pod of slurmrestd has an address yet")


def trusting(pem: str) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=pem)


def published(in_pods: InPods) -> str:
    return str(in_pods.sandbox.admin.get(CONFIG_MAP)["data"]["ca.crt"])


def connected(in_pods: InPods, context: ssl.SSLContext) -> ssl.SSLSocket:
    raw = socket.create_connection((address(in_pods), PORT), ANSWERS_S)
    return context.wrap_socket(raw, server_hostname=HOST)


def serial(connection: ssl.SSLSocket) -> int:
    """Of the certificate that the server has presented."""
    return x509.load_der_x509_certificate(
        connection.getpeercert(binary_form=True) or b""
    ).serial_number


def answers(connection: socket.socket) -> bool:
    """Ask over this connection; whether slurmrestd answers, whatever it says."""
    connection.sendall(REQUEST)
    head = b""
    while b"\r\n\r\n" not in head:
        piece = connection.recv(1 << 16)
        if not piece:
            return False
        head += piece
    fields, _, body = head.partition(b"\r\n\r\n")
    (length,) = [
        int(line.split(b":")[1])
        for line in fields.split(b"\r\n")
        if line.lower().startswith(b"content-length")
    ]
    while len(body) < length:
        body += connection.recv(1 << 16)
    return fields.startswith(b"HTTP/1.1 ")


def from_a_pod(in_pods: InPods, port: int, sent: str) -> str:
    """What a pod of the cluster gets from slurmrestd's pod for some bytes."""
    script = f'exec 3<> "/dev/tcp/{address(in_pods)}/{port}" || exit; printf "$0" >&3; timeout 5 cat <&3 | tr -d "\\0"'
    return in_pods.run("bash", "-c", f"{script}; true", sent)


def test_slurmrestd_is_asked_by_tls_only(in_pods: InPods) -> None:
    plain = "GET /slurm/v0.0.44/ping/ HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n"
    assert "HTTP/" not in from_a_pod(in_pods, PORT, plain)
    assert "" == from_a_pod(in_pods, BEHIND, plain)  # nobody listens there for others
    with connected(in_pods, trusting(published(in_pods))) as connection:
        assert answers(connection)
    day = timedelta(days=1)
    stranger = pki.make_authority("stranger", now=SystemClock().now(), lifetime=day)
    with pytest.raises(ssl.SSLCertVerificationError, match="verify failed"):
        connected(in_pods, trusting(stranger.certificate.decode()))
    wait_until(
        lambda: in_pods.condition("nodesets", "workers", "SlurmKnown")[0] == "True",
        STARTS_S,
        sandbox=in_pods.sandbox,
    )


@dataclass(slots=True)
class Client:
    """Asks again and again, over a new connection each time, and trusts what is published."""

    in_pods: InPods
    serials: list[int] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> None:
        while not self.stop.wait(0.5):
            try:
                with connected(self.in_pods, trusting(published(self.in_pods))) as connection:
                    assert answers(connection)
                    self.serials.append(serial(connection))
            except (OSError, AssertionError) as error:
                self.failed.append(repr(error))


def test_another_certificate_is_presented_while_jobs_run_and_nobody_is_cut_off(
    in_pods: InPods,
) -> None:
    sandbox = in_pods.sandbox
    job = in_pods.submit("workers-0", seconds=60)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    client = Client(in_pods)
    asking = threading.Thread(target=client.run)
    with connected(in_pods, trusting(published(in_pods))) as connection:
        before = serial(connection)
    asking.start()
    try:
        sandbox.admin.delete(f"{SECRETS}/site-restapi-tls")
        wait_until(lambda: bool({*client.serials} - {before}), MOUNTED_S, sandbox=sandbox)
    finally:
        client.stop.set()
        asking.join()
    assert [] == client.failed
    assert 2 == len({*client.serials})
    wait_until(lambda: in_pods.state(job) == "COMPLETED", MOUNTED_S, sandbox=sandbox)
    assert "True" == in_pods.condition("nodesets", "workers", "SlurmKnown")[0]
    assert 0 == restarts(in_pods)


def restarts(in_pods: InPods) -> int:
    """Of all containers of slurmrestd's pods."""
    path = f"/api/v1/namespaces/{NAMESPACE}/pods"
    found = in_pods.sandbox.admin.get(path, labelSelector="app.kubernetes.io/name=slurmrestd")
    return sum(
        each["restartCount"]
        for pod in found["items"]
        for kind in ("initContainerStatuses", "containerStatuses")
        for each in pod["status"].get(kind, ())
    )


def users() -> dict[str, Any]:
    """A Secret such as cert-manager writes, and its CA."""
    now, day = SystemClock().now(), timedelta(days=1)
    ca = pki.make_authority("users", now=now, lifetime=day)
    pair = pki.issue(
        ca, name="a user's server", hosts=frozenset({HOST}), is_client=False, now=now, lifetime=day
    )
    files = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": ca.certificate}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "users-tls"},
        "data": {key: base64.b64encode(each).decode() for key, each in files.items()},
    }


def test_a_users_certificate_takes_its_place_and_the_operator_follows(in_pods: InPods) -> None:
    sandbox, made = in_pods.sandbox, users()
    sandbox.admin.create(SECRETS, made)
    ca = base64.b64decode(made["data"]["ca.crt"]).decode()
    mark = "slurm-bridge.dev/tls-secret=users-tls"
    sandbox.kubectl("-n", NAMESPACE, "annotate", "restapi/site", mark)

    def is_presented() -> bool:
        try:
            with connected(in_pods, trusting(ca)) as connection:
                return answers(connection)
        except OSError:
            return False

    wait_until(is_presented, MOUNTED_S, sandbox=sandbox)
    assert ca == published(in_pods)
    wait_until(
        lambda: in_pods.condition("restapis", "site", "Ready")[0] == "True",
        STARTS_S,
        sandbox=sandbox,
    )
    # Only an operator that is answered drains a worker.
    sandbox.kubectl("-n", NAMESPACE, "scale", "nodeset/workers", "--replicas=1")
    wait_until(lambda: len(in_pods.workers()) == 1, MOUNTED_S, sandbox=sandbox)
