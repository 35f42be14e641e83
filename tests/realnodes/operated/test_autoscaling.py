"""A HorizontalPodAutoscaler of the real kube-controller-manager scales a NodeSet by what Slurm's jobs want, and no job is lost."""

import contextlib
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbox.image.slurm import SlurmImage
from sandbox.operator import names
from sandbox.ports import choose
from sandbox.realnodes.network import Network
from tests.realnodes.in_pods import NAMESPACE, STARTS_S, InPods, slurm_in_pods
from tests.realnodes.operated import external_metrics
from tests.servers import wait_until

pytestmark = pytest.mark.real_all

LOOKS_S = 120.0
"""The autoscaler looks every fifteen seconds."""
MOST = 2
LONG_S, SHORT_S = 40, 5
CA = f"/api/v1/namespaces/{NAMESPACE}/configmaps/site-restapi-tls"
AUTOSCALERS = f"/apis/autoscaling/v2/namespaces/{NAMESPACE}/horizontalpodautoscalers"
AUTOSCALER = {
    "metadata": {"name": "workers"},
    "spec": {
        "scaleTargetRef": {
            "apiVersion": "slinky.slurm.net/v1beta1",
            "kind": "NodeSet",
            "name": "workers",
        },
        "minReplicas": 1,
        "maxReplicas": MOST,
        "metrics": [
            {
                "type": "External",
                "external": {
                    "metric": {
                        "name": external_metrics.METRIC,
                        "selector": {"matchLabels": {"partition": "workers"}},
                    },
                    "target": {"type": "AverageValue", "averageValue": "1"},
                },
            }
        ],
        "behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}},
    },
}


@pytest.fixture(scope="module")
def in_pods(
    slurm_images: tuple[SlurmImage, ...], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[InPods]:
    """A Slurm of two workers, whose numbers are served as external metrics."""
    with slurm_in_pods(slurm_images) as found, contextlib.ExitStack() as stack:
        wait_until(lambda: found.run("sinfo", "-h", "-o", "%D %t") == "2 idle\n", STARTS_S)
        gateway = Network.load(found.sandbox.instance.root).gateway
        folder = tmp_path_factory.mktemp("metrics")
        page = stack.enter_context(exporter(found, folder / "ca.crt"))
        stack.enter_context(external_metrics.served(found.sandbox, page, gateway, folder))
        yield found


@contextlib.contextmanager
def exporter(in_pods: InPods, ca_file: Path) -> Iterator[str]:
    """Run slurm-exporter beside the cluster, where it knows the names of Services; yield the URL of its page."""
    dice = random.Random()  # noqa: S311  # a port, nothing secret
    listen = f"127.0.0.1:{choose(['exporter'], dice=dice)['exporter']}"
    _, token = in_pods.run("scontrol", "token", "username=slurm", "lifespan=3600").split("=", 1)
    instance = in_pods.sandbox.instance
    ca_file.write_text(in_pods.sandbox.admin.get(CA)["data"]["ca.crt"])
    command = (
        *names.with_hosts(names.hosts_file(instance)),
        *(sys.executable, "-m", "slurmexporter"),
        *("--server", f"https://site-restapi.{NAMESPACE}.svc:6820", "--ca-file", str(ca_file)),
        *("--listen", listen, "--interval", "1"),
    )
    process = subprocess.Popen(
        command,
        env={**os.environ, "SLURM_JWT": token.strip()},
        stdout=subprocess.DEVNULL,
    )
    try:
        wait_until(lambda: answers(f"http://{listen}/readyz"), STARTS_S)
        yield f"http://{listen}/metrics"
    finally:
        process.terminate()
        process.wait()


def answers(url: str) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return httpx.get(url, trust_env=False).is_success
    return False


def test_workers_come_and_go_as_jobs_want_them_and_each_job_ends_by_itself(in_pods: InPods) -> None:
    sandbox = in_pods.sandbox
    sandbox.admin.create(AUTOSCALERS, AUTOSCALER)
    # Without jobs there is one worker, and Slurm knows of no other.
    wait_until(lambda: len(in_pods.workers()) == 1, LOOKS_S, sandbox=sandbox)

    # Two jobs that want a node each, and one that wants two: wider than the set is now.
    alone = [in_pods.submit_wide(1, LONG_S), in_pods.submit_wide(1, SHORT_S)]
    wide = in_pods.submit_wide(MOST, SHORT_S)
    wait_until(lambda: len(in_pods.workers()) == MOST, LOOKS_S, sandbox=sandbox)
    ended = {(job, "COMPLETED") for job in (*alone, wide)}
    wait_until(lambda: ended <= in_pods.accounted(), 2 * LOOKS_S, sandbox=sandbox)

    # The set is made smaller while a job runs on the worker that would go first otherwise.
    _, last = in_pods.workers()
    job = in_pods.submit(last, LONG_S)
    wait_until(lambda: in_pods.state(job) == "RUNNING", STARTS_S, sandbox=sandbox)
    wait_until(lambda: in_pods.workers() == [last], LOOKS_S, sandbox=sandbox)
    wait_until(lambda: (job, "COMPLETED") in in_pods.accounted(), LOOKS_S, sandbox=sandbox)


def test_a_job_that_is_wider_than_the_set_may_become_waits(in_pods: InPods) -> None:
    """After the test above: there is one worker."""
    job = in_pods.submit_wide(MOST + 1, SHORT_S)
    wait_until(lambda: len(in_pods.workers()) == MOST, LOOKS_S, sandbox=in_pods.sandbox)
    assert "PENDING" == in_pods.state(job)
    in_pods.run("scancel", job)
    wait_until(lambda: len(in_pods.workers()) == 1, LOOKS_S, sandbox=in_pods.sandbox)
