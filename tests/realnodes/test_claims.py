"""Devices from resource claims on a real kubelet: Kubernetes' own DRA test driver."""

from bridge.domain import names
from sandbox.client import Sandbox
from sandbox.realnodes.box import DRA_DRIVER
from tests.realnodes.containers import Containers, running
from tests.servers import fresh_namespace

API = "/apis/resource.k8s.io/v1"


def test_a_pod_without_us_gets_the_device_that_its_claim_was_given(real: Sandbox) -> None:
    selector = {"cel": {"expression": f"device.driver == '{DRA_DRIVER}'"}}
    real.admin.create(
        f"{API}/deviceclasses",
        {"metadata": {"name": "plain.example"}, "spec": {"selectors": [selector]}},
    )
    with fresh_namespace(real, labels={}) as namespace:
        requests = [{"name": "dev", "exactly": {"deviceClassName": "plain.example", "count": 2}}]
        real.admin.create(
            f"{API}/namespaces/{namespace}/resourceclaims",
            {"metadata": {"name": "two"}, "spec": {"devices": {"requests": requests}}},
        )
        pods = Containers(real, namespace)
        made = running(['test "$claim_two_dev" = true'], node="real-0")
        made["containers"][0]["resources"]["claims"] = [{"name": "c"}]
        body = {
            "metadata": {"name": "plain"},
            "spec": {
                **made,
                "resourceClaims": [{"name": "c", "resourceClaimName": "two"}],
                "tolerations": [{"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}],
            },
        }
        real.admin.create(f"/api/v1/namespaces/{namespace}/pods", body)

        assert pods.ends("plain")["status"]["phase"] == "Succeeded"
