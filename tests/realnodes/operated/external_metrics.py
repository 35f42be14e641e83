"""Metrics of slurm-exporter as Kubernetes' external metrics: what prometheus-adapter or KEDA does in a cluster, for one metric.

<https://github.com/kubernetes/metrics>: an aggregated API server, which a HorizontalPodAutoscaler asks by way of kube-apiserver.
"""

import base64
import contextlib
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families
from typing_extensions import override

from sandbox import kubernetes, pki
from sandbox.client import Sandbox
from slurmruntime.process.clock import SystemClock

METRIC = "slurm_wanted_nodes"
FAMILIES = ("slurm_allocated_nodes", "slurm_requested_nodes")
"""What jobs hold, and what those that wait ask for."""
_GROUP, _VERSION = "external.metrics.k8s.io", "v1beta1"
_NAMESPACE, _SERVICE = "kube-system", "external-metrics"


def wanted(page: str, partition: str) -> float:
    """Return how many nodes the jobs of a partition have or ask for.

    Args:
        page: of slurm-exporter.
        partition: its name.
    """
    return sum(
        sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
        if sample.name in FAMILIES and sample.labels.get("partition") == partition
    )


@contextlib.contextmanager
def served(sandbox: Sandbox, exporter: str, address: str, folder: Path) -> Iterator[None]:
    """Serve the metric in the whole cluster.

    Args:
        sandbox: with its Kubernetes.
        exporter: the URL of slurm-exporter's page.
        address: of this host, at which the API server finds us.
        folder: for the certificate.
    """
    authority = kubernetes.authority(sandbox.instance)
    host = f"{_SERVICE}.{_NAMESPACE}.svc"
    pair = pki.issue(authority, name=host, hosts=(host,), now=SystemClock().now())
    (folder / "tls.pem").write_bytes(pair.key + pair.certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "tls.pem")
    server = ThreadingHTTPServer((address, 0), _handler(exporter))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        _register(sandbox, address, server.server_port, authority.certificate)
        yield
    finally:
        server.shutdown()
        server.server_close()


def _register(sandbox: Sandbox, address: str, port: int, authority: bytes) -> None:
    meta: dict[str, Any] = {"name": _SERVICE, "namespace": _NAMESPACE}
    ports = [{"port": 443, "targetPort": port, "protocol": "TCP"}]
    services = f"/api/v1/namespaces/{_NAMESPACE}/services"
    sandbox.admin.create(services, {"metadata": meta, "spec": {"ports": ports}})
    sandbox.admin.create(
        f"/apis/discovery.k8s.io/v1/namespaces/{_NAMESPACE}/endpointslices",
        {
            "metadata": meta | {"labels": {"kubernetes.io/service-name": _SERVICE}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
            "ports": [{"port": port, "protocol": "TCP"}],
        },
    )
    sandbox.admin.create(
        "/apis/apiregistration.k8s.io/v1/apiservices",
        {
            "metadata": {"name": f"{_VERSION}.{_GROUP}"},
            "spec": {
                "group": _GROUP,
                "version": _VERSION,
                "groupPriorityMinimum": 100,
                "versionPriority": 100,
                "service": {"name": _SERVICE, "namespace": _NAMESPACE, "port": 443},
                "caBundle": base64.b64encode(authority).decode(),
            },
        },
    )


def _handler(exporter: str) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if path == f"/apis/{_GROUP}/{_VERSION}":
                self._answer(_RESOURCES)
            elif path.endswith(f"/{METRIC}"):
                partition = httpx.QueryParams(query)["labelSelector"].partition("=")[2]
                found = wanted(httpx.get(exporter, trust_env=False).text, partition)
                self._answer(_values(found, partition))
            else:
                self.send_error(404)

        def _answer(self, body: object) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(body).encode())

        @override
        def log_message(self, format: str, *args: object) -> None:
            pass

    return Handler


_RESOURCES = {
    "kind": "APIResourceList",
    "apiVersion": "v1",
    "groupVersion": f"{_GROUP}/{_VERSION}",
    "resources": [
        {
            "name": METRIC,
            "singularName": "",
            "namespaced": True,
            "kind": "ExternalMetricValueList",
            "verbs": ["get"],
        }
    ],
}


def _values(found: float, partition: str) -> object:
    item = {
        "metricName": METRIC,
        "metricLabels": {"partition": partition},
        "timestamp": SystemClock().now().isoformat(),
        "value": f"{found:.0f}",
    }
    return {
        "kind": "ExternalMetricValueList",
        "apiVersion": f"{_GROUP}/{_VERSION}",
        "metadata": {},
        "items": [item],
    }
