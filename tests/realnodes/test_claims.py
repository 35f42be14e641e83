"""Resource claims on a real kubelet: containers get the very devices that Slurm gave their jobs."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from bridge.domain import names
from sandbox.client import Sandbox
from sandbox.options import Options
from sandbox.realnodes.box import DRA_DRIVER
from tests.realnodes.containers import ENDS_S, STARTS_S, Containers
from tests.servers import fresh_namespace, running_sandbox, wait_until

NODE = "real-0"
DEVICES = 4
API = "/apis/resource.k8s.io/v1"
OPTIONS = Options(
    nodes=0,
    plain_nodes=0,
    real_nodes=1,
    real_dra=DEVICES,
    settings=(
        f"""controllers.device_profiles={{"device.driver == '{DRA_DRIVER}'": "gpu:example"}}""",
    ),
)
ALL = {f"device-{index:02}" for index in range(DEVICES)}
TOLD = "cat $(find /var/run/kubernetes.io/dra-device-attributes -name '*.json')"
"""What the driver has mounted into the container: each of its devices."""


@pytest.fixture(scope="module")
def real_devices(able: None) -> Iterator[Sandbox]:
    with running_sandbox(OPTIONS) as sandbox:
        selector = {"cel": {"expression": f'device.driver == "{DRA_DRIVER}"'}}
        body = {"metadata": {"name": "example"}, "spec": {"selectors": [selector]}}
        sandbox.admin.create(f"{API}/deviceclasses", body)
        wait_until(lambda: is_offered(sandbox), STARTS_S, sandbox=sandbox)
        yield sandbox


@pytest.fixture
def claimants(real_devices: Sandbox) -> Iterator["Claimants"]:
    with fresh_namespace(real_devices, labels={names.ENABLED_LABEL: "true"}) as namespace:
        found = Claimants(Containers(real_devices, namespace))
        for count in (1, 2, DEVICES):
            exactly = {"deviceClassName": "example", "count": count}
            spec = {"devices": {"requests": [{"name": "device", "exactly": exactly}]}}
            body = {"metadata": {"name": f"devices-{count}"}, "spec": {"spec": spec}}
            path = f"{API}/namespaces/{namespace}/resourceclaimtemplates"
            real_devices.admin.create(path, body)
        yield found
        found.end()


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

    def inside(self, name: str) -> set[str]:
        """The devices that a container has by its driver's word."""
        log = self.sandbox.kubectl("-n", self.pods.namespace, "logs", name)
        decoder, found, position = json.JSONDecoder(), set(), 0
        while position < len(log):
            document, position = decoder.raw_decode(log, position)
            found |= {device["name"] for each in document["requests"] for device in each["devices"]}
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
        statuses = [each.get("status", {}) for each in self.sandbox.admin.get(path)["items"]]
        return [each for each in statuses if "allocation" in each]

    def holds(self, *pods: str) -> bool:
        """Check whether these pods have devices, and no others."""
        owners = [each["name"] for claim in self.claims() for each in claim.get("reservedFor", ())]
        return sorted(owners) == sorted(pods)

    def end(self) -> None:
        """Delete all pods and wait until nobody has a device."""
        self.sandbox.admin.delete(f"/api/v1/namespaces/{self.pods.namespace}/pods")
        wait_until(lambda: not self.claims(), ENDS_S, sandbox=self.sandbox)


def is_offered(sandbox: Sandbox) -> bool:
    """Check whether Slurm has the node's devices and gives them."""
    told = sandbox.run("scontrol", "show", "node", NODE, "-o")
    return f"Gres=gpu:example:{DEVICES}" in told and "DRAIN" not in told


def test_a_container_has_the_very_devices_that_slurm_gave_its_job(claimants: Claimants) -> None:
    pods = claimants.pods
    claimants.create("first", "exec sleep 600", count=1)
    pods.runs("first")
    claimants.create("beside", "exec sleep 600", count=1)
    pods.runs("beside")
    assert {"device-00"} == claimants.inside("first") == claimants.in_slurm("first")
    assert {"device-01"} == claimants.inside("beside") == claimants.in_slurm("beside")

    claimants.sandbox.run("scancel", pods.job_of("first"))
    pods.ends("first")
    claimants.create("around", "exec sleep 600", count=2)
    pods.runs("around")

    assert {"device-00", "device-02"} == claimants.inside("around") == claimants.in_slurm("around")
    assert claimants.holds("beside", "around")


def test_the_next_one_gets_the_devices_of_who_has_ended(claimants: Claimants) -> None:
    """All devices each, so none could start beside another."""
    pods = claimants.pods
    claimants.create("cancelled", "exec sleep 600", count=DEVICES)
    pods.runs("cancelled")
    claimants.create("brief", "until [ -e /go ]; do sleep 0.1; done", count=DEVICES)
    claimants.create("last", "exec sleep 600", count=DEVICES)
    assert claimants.holds("cancelled")

    claimants.sandbox.run("scancel", pods.job_of("cancelled"))
    pods.runs("brief")
    assert claimants.holds("brief")
    claimants.sandbox.kubectl("-n", pods.namespace, "exec", "brief", "--", "touch", "/go")

    pods.runs("last")
    assert ALL == claimants.inside("brief") == claimants.inside("last")
    assert claimants.holds("last")


def test_claims_outlive_restarts_of_kubelet_and_driver(
    real_devices: Sandbox, claimants: Claimants
) -> None:
    """A kubelet that starts deletes the ResourceSlices of its node, and so does one that misses a driver."""
    pods = claimants.pods
    claimants.create("lasting", "exec sleep 600", count=2)
    began = pods.runs("lasting")["status"]["containerStatuses"][0]

    real_devices.end_daemon(NODE, "kubelet")
    wait_until(lambda: not is_offered(real_devices), STARTS_S, sandbox=real_devices)
    real_devices.end_daemon(NODE, "dra-test-driver")
    wait_until(lambda: is_offered(real_devices), STARTS_S, sandbox=real_devices)

    assert began == pods.get("lasting")["status"]["containerStatuses"][0]
    assert claimants.holds("lasting")
    claimants.create("beside", "exec sleep 600", count=2)
    pods.runs("beside")
    assert ALL - claimants.inside("lasting") == claimants.inside("beside")

    # The driver that has prepared them is not the one that lets them go.
    real_devices.run("scancel", pods.job_of("lasting"))
    pods.ends("lasting")
    wait_until(lambda: claimants.holds("beside"), ENDS_S, sandbox=real_devices)
