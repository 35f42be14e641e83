"""Devices of simulated nodes, and pods that claim them, on real servers."""

from dataclasses import dataclass
from typing import Any

from bridge.domain import names
from sandbox.client import Sandbox
from tests.servers import wait_until

DRIVER = "gpu.example.com"
RESOURCE = "example.com/accelerator"
"""By which Kubernetes 1.36 lets pods ask for the class's devices, and by the name of the class."""
PROFILE = f"""controllers.device_profiles={{"device.driver == '{DRIVER}'": "gpu:example"}}"""
OF_EACH = 4
API = "/apis/resource.k8s.io/v1"
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class Devices:
    """Nodes with four devices each, and a bridged namespace."""

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

    def given(self, name: str) -> dict[str, Any]:
        """The status of the claim of a pod that runs."""
        wait_until(
            lambda: self.get(name)["status"]["phase"] == "Running", PATIENCE_S, sandbox=self.sandbox
        )
        found = self.get(name)
        entry = found["spec"]["resourceClaims"][0]
        made = found["status"].get("resourceClaimStatuses", [{}])[0].get("resourceClaimName")
        claim = entry.get("resourceClaimName") or made
        status: dict[str, Any] = self.sandbox.admin.get(
            f"{API}/namespaces/{self.namespace}/resourceclaims/{claim}"
        )["status"]
        return status

    def in_slurm(self, name: str) -> set[str]:
        """The devices whose indexes Slurm gave a pod's job, by the names the driver has for them."""
        job = self.get(name)["metadata"]["labels"][names.JOB_ID_LABEL]
        line = self.sandbox.run("scontrol", "show", "-d", "job", job)
        text = line.partition("(IDX:")[2].partition(")")[0]
        found: set[str] = set()
        for part in text.split(","):
            first, _, last = part.partition("-")
            found |= {f"gpu-{index}" for index in range(int(first), int(last or first) + 1)}
        return found


def pod(name: str, **claim: str) -> dict[str, Any]:
    container = {"name": "c", "image": "busybox", "resources": {"claims": [{"name": "gpu"}]}}
    return {
        "metadata": {"name": name},
        "spec": {"containers": [container], "resourceClaims": [{"name": "gpu", **claim}]},
    }


def device_class() -> dict[str, Any]:
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    spec = {"selectors": [selector], "extendedResourceName": RESOURCE}
    return {"metadata": {"name": DRIVER}, "spec": spec}


def offer(sandbox: Sandbox) -> None:
    """Give each node of Slurm's four devices, and wait until Slurm knows them."""
    sandbox.admin.create(f"{API}/deviceclasses", device_class())
    nodes = sandbox.instance.options.node_names
    for node in nodes:
        devices = [{"name": f"gpu-{index}"} for index in range(OF_EACH)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        body = {"metadata": {"name": f"slice-{node}"}, "spec": spec}
        sandbox.admin.create(f"{API}/resourceslices", body)
    told = f"Gres=gpu:example:{OF_EACH}"
    wait_until(
        lambda: sandbox.run("scontrol", "show", "nodes").count(told) == len(nodes),
        PATIENCE_S,
        sandbox=sandbox,
    )
