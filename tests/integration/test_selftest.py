"""The controllers know whether the webhook works, and a namespace for that question holds nothing."""

import re

import httpx
import pytest

from sandbox import chart
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, container
from tests.servers import wait_until

NAMESPACE = "slurm-bridge-self-test"
PATIENCE_S = 60.0
"""The next test while all is well is ten seconds away."""


def ask(sandbox: Sandbox, path: str) -> tuple[int, str]:
    answer = httpx.get(f"{sandbox.instance.url('controllers-health')}{path}", trust_env=False)
    return answer.status_code, answer.text


def works(sandbox: Sandbox) -> float:
    (value,) = re.findall(
        r"^slurm_bridge_webhook_works (\S+)$", ask(sandbox, "/metrics")[1], re.MULTILINE
    )
    return float(value)


def test_a_dead_webhook_is_seen_and_its_return_too(full_sandbox: Sandbox) -> None:
    wait_until(lambda: works(full_sandbox) == 1, PATIENCE_S, sandbox=full_sandbox)
    assert 200 == ask(full_sandbox, "/readyz")[0]

    full_sandbox.stop("webhook")
    try:
        wait_until(lambda: works(full_sandbox) == 0, PATIENCE_S, sandbox=full_sandbox)
        code, said = ask(full_sandbox, "/readyz")
        assert 503 == code
        assert "[-] webhook: pods of selected namespaces cannot be created" in said
    finally:
        full_sandbox.start("webhook")

    wait_until(lambda: works(full_sandbox) == 1, PATIENCE_S, sandbox=full_sandbox)
    assert 200 == ask(full_sandbox, "/readyz")[0]


def test_not_even_the_administrator_creates_a_pod_there(full_sandbox: Sandbox) -> None:
    body = {"metadata": {"name": "real"}, "spec": {"containers": [container()]}}

    with pytest.raises(ApiError, match="no pod is created here"):
        full_sandbox.admin.create(f"/api/v1/namespaces/{NAMESPACE}/pods", body)


@pytest.mark.attack(
    "use the controllers' account to create pods",
    "a dry run in one namespace only",
)
def test_the_controllers_create_pods_nowhere_else(worlds: Worlds, full_sandbox: Sandbox) -> None:
    body = {"metadata": {"name": "theirs"}, "spec": {"containers": [container()]}}
    with Api(chart.credentials(full_sandbox.instance, "controllers")) as controllers:
        for path in (f"{worlds.path}/pods", f"/api/v1/namespaces/{NAMESPACE}/pods"):
            with pytest.raises(ApiError, match=r"cannot create resource|no pod is created here"):
                controllers.create(path, body)
