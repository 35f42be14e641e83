"""Faults for the doctor to find, sown into a sandbox and taken out again."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import yaml
from typer.testing import CliRunner

from sandbox.client import Sandbox
from slurmcli import plugin
from slurmruntime.values import names
from tests.servers import wait_until

ADMISSION = "/apis/admissionregistration.k8s.io/v1"
OURS = "/api/v1/namespaces/slurm-bridge-system"
PLAIN = (
    '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},'
    ' "spec": {"containers": [{"name": "main", "image": "none"}]}}'
)
RBAC = "/apis/rbac.authorization.k8s.io/v1"
Findings = Mapping[str, dict[str, str]]
Doctor = Callable[..., Findings]


def policy_binding(name: str) -> str:
    """The path of the chart's binding with this suffix."""
    return f"{ADMISSION}/validatingadmissionpolicybindings/slurm-bridge-{name}"


def examined(env: Mapping[str, str], *arguments: str) -> Findings:
    """What the doctor says, by check; its exit code says whether there is a fault."""
    done = CliRunner().invoke(plugin.app(), ("doctor", "-o", "json", *arguments), env=env)
    found = {finding["check"]: finding for finding in json.loads(done.stdout)}
    faults = [check for check, finding in found.items() if finding["verdict"] == "fault"]
    assert (2 if faults else 0) == done.exit_code
    return found


def until_faulty(doctor: Doctor, check: str, sandbox: Sandbox) -> Findings:
    """The API server takes a moment to notice what was sown."""
    found: list[Findings] = []

    def is_faulty() -> bool:
        found.append(doctor())
        return found[-1][check]["verdict"] == "fault"

    wait_until(is_faulty, 60, sandbox=sandbox)
    return found[-1]


@contextlib.contextmanager
def config_map(
    sandbox: Sandbox, name: str, key: str
) -> Iterator[Callable[[Callable[[Any], Any]], None]]:
    """Rewrite a file in a ConfigMap for a while; the services read theirs at start only."""
    before = sandbox.admin.get(f"{OURS}/configmaps/{name}")["data"][key]

    def write(text: str) -> None:
        patch = json.dumps({"data": {key: text}})
        sandbox.kubectl("-n", names.RELEASE_NAMESPACE, "patch", "configmap", name, "-p", patch)

    try:
        yield lambda change: write(yaml.safe_dump(change(yaml.safe_load(before))))
    finally:
        write(before)


@contextlib.contextmanager
def taken_away(sandbox: Sandbox, path: str) -> Iterator[None]:
    """Delete an object for a while."""
    before = sandbox.admin.get(path)
    sandbox.admin.delete(path)
    try:
        yield
    finally:
        sandbox.kubectl("create", "-f", "-", stdin=again(before))


def again(seen: dict[str, Any]) -> str:
    metadata = {k: seen["metadata"][k] for k in ("name", "labels") if k in seen["metadata"]}
    whole = {key: value for key, value in seen.items() if key != "status"}
    return json.dumps({**whole, "metadata": metadata})


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    merged = dict(old)
    for key, value in new.items():
        merged[key] = {**old.get(key, {}), **value} if isinstance(value, dict) else value
    return merged
