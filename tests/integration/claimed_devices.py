"""Two nodes whose drivers publish four GPUs and two NICs each, and pods that ask for them in every way."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.values import names
from tests.servers import fresh_namespace, running_sandbox, wait_until

DRIVER = "gpu.example.com"
RESOURCE = "example.com/accelerator"
"""The class's extendedResourceName, for which the bridge makes claims."""
NICS = "rdma.example.com"
"""A class of some devices of another driver."""
NIC_DRIVER = "net.example.com"
NIC_SELECTOR = f"device.driver == '{NIC_DRIVER}' && device.attributes['{NIC_DRIVER}'].rdma == true"
UNKNOWN_RESOURCE = "example.com/rdma"
"""The extendedResourceName of that class, which the bridge was not told of."""
CLASS_AS_RESOURCE = f"deviceclass.resource.kubernetes.io/{DRIVER}"
API = "/apis/resource.k8s.io/v1"
PATIENCE_S = 60.0
OPTIONS = Options(
    nodes=2,
    plain_nodes=0,
    node_gpus=0,
    settings=(
        "controllers.device_profiles="
        + json.dumps({f"device.driver == '{DRIVER}'": "gpu:example", NIC_SELECTOR: "nic"}),
        "controllers.device_resources=" + json.dumps({RESOURCE: DRIVER}),
    ),
)


@dataclass(frozen=True, slots=True)
class Devices:
    """Two nodes with four devices each, and a bridged namespace."""

    sandbox: Sandbox
    namespace: str

    def claim(self, name: str, *, kind: str = "resourceclaims", **request: Any) -> None:
        exactly = {"deviceClassName": DRIVER, "count": 1, **request}
        spec: dict[str, Any] = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
        body = {"metadata": {"name": name}, "spec": spec}
        if kind == "resourceclaimtemplates":
            body["spec"] = {"spec": spec}
        self.sandbox.admin.create(f"{API}/namespaces/{self.namespace}/{kind}", body)

    def pod(self, name: str, **claim: str) -> None:
        self.sandbox.admin.create(f"/api/v1/namespaces/{self.namespace}/pods", pod(name, **claim))

    def get(self, name: str) -> dict[str, Any]:
        return self.sandbox.admin.get(f"/api/v1/namespaces/{self.namespace}/pods/{name}")

    def create(self, body: dict[str, Any]) -> None:
        """Create a pod from its manifest."""
        self.sandbox.admin.create(f"/api/v1/namespaces/{self.namespace}/pods", body)

    def runs(self, name: str) -> dict[str, Any]:
        """The pod, as soon as it runs."""
        wait_until(
            lambda: self.get(name)["status"]["phase"] == "Running", PATIENCE_S, sandbox=self.sandbox
        )
        return self.get(name)

    def said(self, name: str) -> str:
        """What a pod's condition says of Slurm."""
        conditions = self.get(name)["status"].get("conditions", [])
        found = [
            condition for condition in conditions if condition["type"] == names.ALLOCATED_CONDITION
        ]
        return found[0]["message"] if found else ""

    def is_told(self, name: str, words: str) -> None:
        """Wait until a pod's condition says so."""
        wait_until(lambda: words in self.said(name), PATIENCE_S, sandbox=self.sandbox)

    def all_given(self, name: str) -> list[dict[str, Any]]:
        """The statuses of all claims of a pod that runs."""
        found = self.runs(name)
        made = {
            resource_claim_status["name"]: resource_claim_status["resourceClaimName"]
            for resource_claim_status in found["status"].get("resourceClaimStatuses", [])
        }
        claims = [
            resource_claim.get("resourceClaimName") or made[resource_claim["name"]]
            for resource_claim in found["spec"]["resourceClaims"]
        ]
        path = f"{API}/namespaces/{self.namespace}/resourceclaims"
        return [self.sandbox.admin.get(f"{path}/{claim}")["status"] for claim in claims]

    def given(self, name: str) -> dict[str, Any]:
        """The status of the first claim of a pod that runs."""
        return self.all_given(name)[0]

    def in_slurm(self, name: str, gres: str = "gpu:example", device: str = "gpu") -> set[str]:
        """The devices whose indexes Slurm gave a pod's job, by the names the driver has for them."""
        job = self.get(name)["metadata"]["labels"][names.JOB_ID_LABEL]
        line = self.sandbox.run("scontrol", "show", "-d", "job", job)
        found: set[str] = set()
        for text in re.findall(rf"[=,]{gres}:[0-9]+\(IDX:([-0-9,]+)\)", line):
            for part in text.split(","):
                first, _, last = part.partition("-")
                found |= {
                    f"{device}-{index}" for index in range(int(first), int(last or first) + 1)
                }
        return found


def pod(name: str, **claim: str) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "resourceClaims": [{"name": "gpu", **claim}]},
    }


def device_class(name: str = DRIVER) -> dict[str, Any]:
    expression, resource = CLASSES[name]
    spec = {"selectors": [{"cel": {"expression": expression}}], "extendedResourceName": resource}
    return {"metadata": {"name": name}, "spec": spec}


CLASSES = {
    DRIVER: (f'device.driver == "{DRIVER}"', RESOURCE),
    NICS: (NIC_SELECTOR.replace("'", '"'), UNKNOWN_RESOURCE),
}


def _slice(node: str, driver: str, devices: list[dict[str, Any]]) -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": devices}
    return {"metadata": {"name": f"{driver}-{node}"}, "spec": spec}


@contextmanager
def sandbox_with_devices() -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        offer(sandbox)
        yield sandbox


def offer(sandbox: Sandbox) -> None:
    """Publish devices for each simulated node, and wait until Slurm knows them."""
    for name in CLASSES:
        sandbox.admin.create(f"{API}/deviceclasses", device_class(name))
    gpus = [{"name": f"gpu-{index}"} for index in range(4)]
    # The last one is not of the class: its attribute says so.
    nics = [
        {"name": f"nic-{index}", "attributes": {"rdma": {"bool": index < 2}}} for index in range(3)
    ]
    nodes = sandbox.instance.options.node_names
    for node in nodes:
        for driver, devices in ((DRIVER, gpus), (NIC_DRIVER, nics)):
            sandbox.admin.create(f"{API}/resourceslices", _slice(node, driver, devices))
    told = "Gres=gpu:example:4,nic:2"
    wait_until(
        lambda: sandbox.run("scontrol", "show", "nodes").count(told) == len(nodes),
        PATIENCE_S,
        sandbox=sandbox,
    )


@contextmanager
def bridged(sandbox: Sandbox) -> Iterator[Devices]:
    """A fresh namespace that Slurm places."""
    with fresh_namespace(sandbox, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield Devices(sandbox, namespace)


def claiming(name: str, form: str, devices: int = 1) -> dict[str, Any]:
    """A pod that asks for devices: by a claim from template `mine`, or as a resource of that name."""
    if form == "claim":
        return pod(name, resourceClaimTemplateName="mine")
    container = {"name": "c", "image": "busybox", "resources": {"limits": {form: str(devices)}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}
