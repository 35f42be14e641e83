"""Pods that claim devices of real nodes, and what their driver and Slurm say they have."""

import json
from dataclasses import dataclass
from typing import Any

from sandbox.client import Sandbox
from sandbox.realnodes.box import DRA_DRIVER
from tests.realnodes.containers import ENDS_S, Containers
from tests.servers import wait_until

API = "/apis/resource.k8s.io/v1"
GRES = "gpu:example"
PROFILE = f"""controllers.device_profiles={{"device.driver == '{DRA_DRIVER}'": "{GRES}"}}"""
"""The setting by which their devices are Slurm's."""
CLASS = "example"
TOLD = "cat $(find /var/run/kubernetes.io/dra-device-attributes -name '*.json')"
"""What the driver has mounted into the container: each of its devices."""


@dataclass(frozen=True, slots=True)
class Claimants:
    """Pods of one namespace that claim devices by a template."""

    pods: Containers

    @property
    def sandbox(self) -> Sandbox:
        return self.pods.sandbox

    def create(self, name: str, script: str, *, count: int) -> None:
        """Create a pod; once its script runs, its log names its devices."""
        container = {
            "name": "c0",
            "image": "busybox",
            "imagePullPolicy": "IfNotPresent",
            "command": ["sh", "-c", f"{TOLD}; {script}"],
            "resources": {"limits": {"memory": "64Mi"}, "claims": [{"name": "devices"}]},
        }
        template = {"name": "devices", "resourceClaimTemplateName": f"devices-{count}"}
        self.pods.create(name, containers=[container], resourceClaims=[template])

    def inside(self, name: str, container: str = "c0") -> set[str]:
        """The devices that a container has by its driver's word."""
        log = self.sandbox.kubectl("-n", self.pods.namespace, "logs", name, "-c", container)
        decoder, found, position = json.JSONDecoder(), set(), 0
        while position < len(log):
            document, position = decoder.raw_decode(log, position)
            found |= {
                device["name"] for request in document["requests"] for device in request["devices"]
            }
            position += len(log[position:]) - len(log[position:].lstrip())
        return found

    def in_slurm(self, name: str) -> set[str]:
        """The devices whose indexes Slurm gave a pod's job, by the driver's names for them."""
        told = self.sandbox.run("scontrol", "show", "-d", "job", self.pods.job_of(name))
        found: set[str] = set()
        for part in told.partition("(IDX:")[2].partition(")")[0].split(","):
            first, _, last = part.partition("-")
            found |= {f"device-{index:02}" for index in range(int(first), int(last or first) + 1)}
        return found

    def claims(self) -> list[dict[str, Any]]:
        """The statuses of the claims that have devices."""
        path = f"{API}/namespaces/{self.pods.namespace}/resourceclaims"
        statuses = [item.get("status", {}) for item in self.sandbox.admin.get(path)["items"]]
        return [status for status in statuses if "allocation" in status]

    def holds(self, *pods: str) -> bool:
        """Check whether these pods have devices, and no others."""
        owners = [each["name"] for claim in self.claims() for each in claim.get("reservedFor", ())]
        return sorted(owners) == sorted(pods)

    def end(self) -> None:
        """Delete all pods and wait until nobody has a device."""
        self.sandbox.admin.delete(f"/api/v1/namespaces/{self.pods.namespace}/pods")
        wait_until(lambda: not self.claims(), ENDS_S, sandbox=self.sandbox)


def is_offered(sandbox: Sandbox, node: str, devices: int) -> bool:
    """Check whether Slurm has the node's devices and gives them."""
    told = sandbox.run("scontrol", "show", "node", node, "-o")
    return f"Gres={GRES}:{devices}" in told and "DRAIN" not in told


def create_class(sandbox: Sandbox) -> None:
    """Create the class that pods claim devices of."""
    selector = {"cel": {"expression": f'device.driver == "{DRA_DRIVER}"'}}
    body = {"metadata": {"name": CLASS}, "spec": {"selectors": [selector]}}
    sandbox.admin.create(f"{API}/deviceclasses", body)


def create_templates(sandbox: Sandbox, namespace: str, most: int) -> None:
    """Create a template for each number of devices, named devices-1 and so on."""
    for count in range(1, most + 1):
        exactly = {"deviceClassName": CLASS, "count": count}
        spec = {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}
        body = {"metadata": {"name": f"devices-{count}"}, "spec": {"spec": spec}}
        sandbox.admin.create(f"{API}/namespaces/{namespace}/resourceclaimtemplates", body)
