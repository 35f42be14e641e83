"""Pods on real nodes find Services by name, from CoreDNS behind the address that kubelets tell them."""

import pytest

from sandbox.client import Sandbox
from tests.realnodes.containers import Containers
from tests.servers import fresh_namespace

pytestmark = pytest.mark.real_all

ASK = """
nslookup -type=a kubernetes.default.svc.cluster.local | grep -q 'Address: 10.0.0.1$' || exit 1
wget -q -O - --no-check-certificate https://kubernetes.default/version || exit 2
nslookup -type=a web.$NAMESPACE.svc.cluster.local | grep -q "Address: $ADDRESS$" || exit 3
nslookup -type=ptr 1.0.0.10.in-addr.arpa | grep -q 'kubernetes.default.svc.cluster.local' || exit 4
nslookup -type=a example.com | grep -q NXDOMAIN || exit 5
"""


def test_services_have_names_and_nothing_else_has(bare: Sandbox) -> None:
    with fresh_namespace(bare, labels={}) as namespace:
        service = bare.admin.create(
            f"/api/v1/namespaces/{namespace}/services",
            {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}},
        )
        told = f"NAMESPACE={namespace} ADDRESS={service['spec']['clusterIP']}"
        containers = Containers(bare, namespace)
        containers.create("asks", f"{told}\n{ASK}")

        (status,) = containers.ends("asks")["status"]["containerStatuses"]

        said = bare.kubectl("-n", namespace, "logs", "asks")
        assert (0, said) == (status["state"]["terminated"]["exitCode"], said)
