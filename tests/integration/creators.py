"""Who created an object, as a policy records it, and objects that somebody created."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sandbox.api import Api
from sandbox.client import Sandbox
from tests.integration.policed import PolicyFiles
from tests.integration.worlds import Worlds, container, played

ALICE, BOB = "alice@example.org", "bob@example.org"
CREATOR = "example.org/created-by"
IDENTITY = Path(__file__).parents[2] / "docs" / "identity.md"
CRONJOBS = "system:serviceaccount:kube-system:cronjob-controller"


@dataclass(frozen=True, slots=True)
class Tenants:
    """Alice of physics, whose rule goes by her group; Bob of chemistry, whose rule goes by his namespace's label."""

    sandbox: Sandbox
    files: PolicyFiles
    physics: Worlds
    chemistry: Worlds
    alice: Api
    bob: Api


def policy(physics: str) -> dict[str, Any]:
    return {
        "creator_annotation": CREATOR,
        "rules": [
            {
                "name": "physics",
                "match": {"namespaces": [physics], "groups": ["physicists"]},
                "user": "{user}",
                "user_table": {ALICE: "alice"},
                "account": {"default": "physics"},
                "qos": {"default": "normal", "allowed": ["long"]},
                "nice": {"max": 100},
                "time_limit_max_min": 60,
            },
            {
                "name": "recorded",
                "match": {"namespaces": [physics], "users": [ALICE]},
                "user": "alice",
                "account": {"default": "physics"},
            },
            {
                "name": "chemistry",
                "match": {"namespace_labels": {"tenant": "chemistry"}},
                "user": "bob",
                "account": {"default": "chemistry", "allowed": ["nowhere"]},
            },
            {"name": "elsewhere", "match": {"namespaces": ["test-*"]}, "user": "kubernetes"},
        ],
    }


def make_job(worlds: Worlds, name: str, by: Api, *, ports: object = (), **metadata: Any) -> str:
    """A Job, which its controller makes the pod of; its uid."""
    body = {
        "metadata": {"name": name, **metadata},
        "spec": {
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": played(seconds=1)},
                "spec": {
                    "containers": [{**container(), "ports": ports}],
                    "restartPolicy": "Never",
                },
            },
        },
    }
    path = f"/apis/batch/v1/namespaces/{worlds.namespace}/jobs"
    return str(by.create(path, body)["metadata"]["uid"])


def pod_of(worlds: Worlds, job: str) -> dict[str, Any]:
    return worlds.await_one_pod(f"job-name={job}", bool)


@contextmanager
def creators_recorded(sandbox: Sandbox, namespace: str) -> Iterator[None]:
    """The policy that docs/identity.md suggests, in one namespace."""
    (sample,) = re.findall(
        r"```yaml\n(apiVersion: admission.*?)```", IDENTITY.read_text(), re.DOTALL
    )
    group, made = "/apis/admissionregistration.k8s.io/v1", yaml.safe_load(sample)
    name = made["metadata"]["name"]
    where = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"policyName": name, "matchResources": {"namespaceSelector": where}}
    sandbox.admin.create(f"{group}/mutatingadmissionpolicies", made)
    sandbox.admin.create(
        f"{group}/mutatingadmissionpolicybindings", {"metadata": {"name": name}, "spec": spec}
    )
    try:
        yield
    finally:
        for kind in ("mutatingadmissionpolicybindings", "mutatingadmissionpolicies"):
            sandbox.admin.delete(f"{group}/{kind}/{name}")


def owner(sandbox: Sandbox, uid: str, worlds: Worlds) -> str:
    """Who pays for a workload's job: account, user and group, as sacct has them."""
    job = worlds.await_accounted(uid)
    fields = ("-X", "-P", "-n", "-o", "Account,User,Group", "-j", str(job.id))
    return sandbox.run("sacct", *fields).strip()
