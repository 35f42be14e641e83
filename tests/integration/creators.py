"""Who created an object, as a policy records it, and objects that somebody created."""

from dataclasses import dataclass
from typing import Any

from sandbox.api import Api
from sandbox.client import Sandbox
from tests.integration.policed import PolicyFiles
from tests.integration.worlds import Worlds, container, played

ALICE, BOB = "alice@example.org", "bob@example.org"
CREATOR = "example.org/created-by"
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
