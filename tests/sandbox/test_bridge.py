"""The whole sandbox: our services run as a cluster would run them."""

import os
import signal
import subprocess

import httpx

from sandbox.client import Sandbox
from tests.servers import fresh_namespace, wait_until


def test_everything_is_up_and_slurm_has_the_nodes(full_sandbox: Sandbox) -> None:
    assert {part.state for part in full_sandbox.status().values()} == {"up"}
    wait_until(
        lambda: full_sandbox.run("sinfo", "-h", "-o", "%D %T").split() == ["4", "idle"],
        20,
        sandbox=full_sandbox,
    )


def test_the_services_count_where_the_environment_says(full_sandbox: Sandbox) -> None:
    for service in full_sandbox.instance.options.services:
        url = full_sandbox.env[f"SLURM_BRIDGE_METRICS_{service.upper()}"]
        assert "slurm_bridge_build_info" in httpx.get(url, trust_env=False).text


def test_a_service_that_dies_is_started_again(full_sandbox: Sandbox) -> None:
    pid = full_sandbox.status()["webhook"].pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)

    def came_back() -> bool:
        webhook = full_sandbox.status()["webhook"]
        return webhook.state == "up" and webhook.pid != pid

    wait_until(came_back, 60, sandbox=full_sandbox)


def test_a_service_that_died_is_started_again_even_if_it_is_told_to_hang_meanwhile(
    full_sandbox: Sandbox,
) -> None:
    pid = full_sandbox.status()["webhook"].pid
    assert pid is not None

    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: full_sandbox.status()["webhook"].pid != pid, 60, sandbox=full_sandbox)
    full_sandbox.pause("webhook")
    full_sandbox.resume("webhook")

    wait_until(lambda: full_sandbox.status()["webhook"].state == "up", 60, sandbox=full_sandbox)


def test_kubectl_finds_our_plugin_with_what_env_exports(full_sandbox: Sandbox) -> None:
    sourced = f". {full_sandbox.instance.env_file} && cd / && kubectl slurm nodes"

    def nodes() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ("/bin/sh", "-c", sourced),
            env={"PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )

    # Both sides are still being compared while a node has news: that is exit code 2.
    wait_until(lambda: nodes().returncode == 0, 20, sandbox=full_sandbox)
    assert "node-0" in nodes().stdout


def test_an_ordinary_pod_in_an_unlabelled_namespace_runs_and_ends(full_sandbox: Sandbox) -> None:
    with fresh_namespace(full_sandbox, labels={}) as namespace:
        run = ("--image=example.test/image", "--restart=Never")
        ends = ("--annotations=sandbox.slurm-bridge.dev/run-seconds=1",)
        full_sandbox.kubectl("-n", namespace, "run", "plain", *run, *ends)

        def phase_and_node() -> str:
            fields = "--output=jsonpath={.status.phase} {.spec.nodeName}{.metadata.finalizers}"
            return full_sandbox.kubectl("-n", namespace, "get", "pod", "plain", fields)

        wait_until(lambda: phase_and_node() == "Succeeded plain-0", 20, sandbox=full_sandbox)
