"""A node more, in both worlds: what an administrator does to it on either side, and what each side shows."""

import os
import re
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import httpx

from sandbox.api import ApiError
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.values import names
from tests.integration.worlds import Worlds
from tests.servers import DATA_PARSER, wait_until

PATIENCE_S = 60.0
CPUS = 8
_SLURMD_GIVEN_UP_S = 6.0
"""So long slurmctld looks for a slurmd to signal (MessageTimeout is 5 s here); only then is the node NOT_RESPONDING."""


@dataclass(frozen=True, slots=True)
class Machine:
    """One more node of a Kubernetes, and of a Slurm that may be another sandbox's."""

    sandbox: Sandbox
    name: str
    slurm: Sandbox

    @property
    def path(self) -> str:
        return f"/api/v1/nodes/{self.name}"

    @property
    def selector(self) -> dict[str, str]:
        return {"kubernetes.io/hostname": self.name}

    # -- Kubernetes -------------------------------------------------------------------------------

    def label(self, value: str | None, key: str = names.EXTERNAL_NODE_LABEL) -> None:
        self.sandbox.admin.patch(self.path, {"metadata": {"labels": {key: value}}})

    def annotate(self, key: str, value: str | None) -> None:
        self.sandbox.admin.patch(self.path, {"metadata": {"annotations": {key: value}}})

    def cordon(self, *, on: bool) -> None:
        self.sandbox.admin.patch(self.path, {"spec": {"unschedulable": on}})

    def set_status(self, status: Mapping[str, Any]) -> None:
        """As a kubelet does."""
        self.sandbox.admin.request(
            "PATCH",
            f"{self.path}/status",
            {"status": dict(status)},
            content_type="application/strategic-merge-patch+json",
        )

    def set_condition(self, kind: str, status: str, reason: str = "Test") -> None:
        """As a kubelet or a problem detector does."""
        self.set_status({"conditions": [{"type": kind, "status": status, "reason": reason}]})

    def die(self) -> None:
        """The kubelet is heard of no more."""
        self.annotate("sandbox.slurm-bridge.dev/kubelet", "dead")
        self.set_condition("Ready", "Unknown", "NodeStatusUnknown")

    def come_back(self) -> None:
        """The kubelet reports again."""
        self.annotate("sandbox.slurm-bridge.dev/kubelet", None)

    def in_kube(self) -> dict[str, Any]:
        return self.sandbox.admin.get(self.path)

    def taints(self) -> list[str]:
        return [taint["key"] for taint in self.in_kube()["spec"].get("taints", [])]

    def is_cordoned(self) -> bool:
        return bool(self.in_kube()["spec"].get("unschedulable"))

    def condition(self) -> tuple[str, str, str]:
        """Status, reason and message of what it says of Slurm; three times nothing if it has none."""
        for condition in self.in_kube()["status"].get("conditions", []):
            if condition["type"] == names.SLURM_STATE_CONDITION:
                return (condition["status"], condition["reason"], condition["message"])
        return ("", "", "")

    def await_condition(self, reason: str) -> tuple[str, str]:
        """Status and message, as soon as the reason is this one."""

        def found() -> tuple[str, str] | None:
            status, now, message = self.condition()
            return (status, message) if now == reason else None

        answer = wait_until(found, PATIENCE_S, sandbox=self.sandbox)
        assert answer is not None
        return answer

    def events(self) -> dict[str, str]:
        """What was said of it: the last note of each reason."""
        listed = self.sandbox.admin.get(
            "/api/v1/namespaces/default/events", fieldSelector=f"involvedObject.name={self.name}"
        )
        return {event["reason"]: event["message"] for event in listed["items"]}

    def await_event(self, reason: str, words: str) -> None:
        """Fails with all that was said of it: the API server keeps what the logs do not tell."""
        try:
            wait_until(lambda: words == self.events().get(reason), PATIENCE_S, sandbox=self.sandbox)
        except AssertionError as error:
            raise AssertionError(f"no such Event among {self.events()}") from error

    def remove(self) -> None:
        """Unless a test has done so."""
        try:
            self.sandbox.admin.delete(self.path)
        except ApiError as error:
            if error.status != HTTPStatus.NOT_FOUND:
                raise

    # -- Slurm ------------------------------------------------------------------------------------

    def update(self, **change: object) -> None:
        """As an administrator of Slurm, by REST: scontrol insists on a reason."""
        parser = os.environ.get(DATA_PARSER) or "v0.0.44"
        answer = httpx.post(
            f"{self.slurm.slurmrestd_url}/slurm/{parser}/node/{self.name}",
            json=change,
            headers={"X-SLURM-USER-TOKEN": self.slurm.token_file.read_text()},
            trust_env=False,
        )
        assert answer.is_success, answer.text

    def in_slurm(self) -> dict[str, str]:
        """What scontrol shows of it; {} if Slurm has no such node."""
        try:
            line = self.slurm.run("scontrol", "--oneliner", "show", "node", self.name)
        except SandboxError:
            return {}
        fields = re.findall(r"(\w+)=(.*?)(?= \w+=|$)", line.strip())
        return {key: value.strip() for key, value in fields}

    def await_in_slurm(self, is_so: Callable[[dict[str, str]], object] = bool) -> dict[str, str]:
        def found() -> dict[str, str]:
            node = self.in_slurm()
            return node if node and is_so(node) else {}

        return wait_until(found, PATIENCE_S, sandbox=self.sandbox)

    def await_drained(self) -> str:
        """The reason, as soon as it has one."""
        return self.await_in_slurm(lambda node: "DRAIN" in node["State"]).get("Reason", "")

    def await_in_service(self) -> None:
        """Slurm starts jobs there, and the node says so."""
        self.await_in_slurm(lambda node: not re.search("DRAIN|DOWN|FAIL", node["State"]))
        self.await_condition("InService")

    def await_not_in_slurm(self) -> None:
        wait_until(lambda: not self.in_slurm(), PATIENCE_S, sandbox=self.sandbox)


@contextmanager
def a_machine(
    sandbox: Sandbox,
    *,
    slurm: Sandbox | None = None,
    name: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    size: Mapping[str, str] | None = None,
) -> Iterator[Machine]:
    """A node of 8 CPUs, 16 GiB and 2 GPUs in the sandbox's partition, not labelled yet; in the end neither side has it."""
    machine = Machine(sandbox, name or f"extra-{uuid.uuid4().hex[:6]}", slurm or sandbox)
    full = {
        "cpu": str(CPUS),
        "memory": "16Gi",
        "pods": "110",
        "nvidia.com/gpu": "2",
        **(size or {}),
    }
    sandbox.admin.create(
        "/api/v1/nodes",
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": machine.name,
                "labels": {**machine.selector, **(labels or {})},
                "annotations": {
                    "kwok.x-k8s.io/node": "fake",
                    names.PARTITIONS_ANNOTATION: "slurm-bridge",
                    **(annotations or {}),
                },
            },
            "status": {"capacity": full, "allocatable": full},
        },
    )
    try:
        wait_until(
            lambda: not [key for key in machine.taints() if key.startswith("node.kubernetes.io/")],
            PATIENCE_S,
            sandbox=sandbox,
        )
        yield machine
    finally:
        machine.remove()


@contextmanager
def repaired(worlds: Worlds, node: str) -> Iterator[None]:
    """Suspending signals a slurmd that is not there, which spoils an external node: in the end the node controller has made it anew."""
    try:
        yield
    finally:
        worlds.clear()
        spoiled_by_s = time.monotonic() + _SLURMD_GIVEN_UP_S
        wait_until(
            lambda: not [job for job in worlds.queue() if job.nodes == node and job.is_live],
            30,
            sandbox=worlds.sandbox,
        )
        wait_until(
            lambda: time.monotonic() > spoiled_by_s and _is_up(worlds, node),
            30,
            sandbox=worlds.sandbox,
        )


def _is_up(worlds: Worlds, node: str) -> bool:
    """Registered by the node controller again."""
    shown: dict[str, Any] = {}
    lines = worlds.sandbox.run("sinfo", "-h", "-N", "-o", "%N %t").splitlines()
    for line in lines:
        name, state = line.split()
        shown[name] = state
    return shown.get(node) in ("idle", "mix", "alloc")
