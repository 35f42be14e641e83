"""The chart's objects on a real API server, and its profile in the real kube-scheduler."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from controllers.webhook.certificates import Certificates, CertificateSettings
from sandbox import assets
from sandbox.assets.kubeconform import FOLDER as CRD_FOLDER
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from tests.chart.conftest import Render
from tests.chart.policed import OUTSIDE, make_namespaces
from tests.chart.rendering import CHART, REQUIRED, Rendered
from tests.chart.value_sets import VALUES
from tests.make.certificates import Authority

DEPLOYMENTS = ("webhook", "extender", "controllers", "scheduler")
NAMESPACE = "chart-dry-run"
RELEASE = "dry-slurm-bridge"
SELF_TEST_NAMESPACE = f"{RELEASE}-self-test"
"""A dry run makes no namespace, and nothing can be made in one that is not there."""
CONTROLLERS_NAMESPACE = "slurm"
"""That of `slurm.controller` in `value_sets`, in which the chart has a Role."""


@pytest.fixture(scope="module", autouse=True)
def operators(control_plane: Sandbox, kubeconform: assets.Asset) -> Iterator[None]:
    """The kinds of the Prometheus operator and of cert-manager, whose objects the chart can have."""
    crds = f"--filename={kubeconform.bin.parent / CRD_FOLDER}"
    control_plane.kubectl("apply", "--server-side", crds)
    control_plane.kubectl("wait", "--for=condition=Established", "--timeout=60s", crds)
    yield
    control_plane.kubectl("delete", "--wait=false", crds)


@pytest.fixture(scope="module")
def namespace(control_plane: Sandbox) -> str:
    make_namespaces(
        control_plane, {NAMESPACE: {}, SELF_TEST_NAMESPACE: {}, CONTROLLERS_NAMESPACE: {}}
    )
    return NAMESPACE


@pytest.mark.parametrize("values", [pytest.param(v, id=k) for k, v in VALUES.items()])
def test_api_server_takes_every_object(
    control_plane: Sandbox, namespace: str, render: Render, values: dict[str, Any]
) -> None:
    if "tls" in values:
        ca = (control_plane.instance.kube / "ca.crt").read_text()
        values = values | {"tls": {**values["tls"], "caBundle": ca}}
    chart = render(values, release=RELEASE, namespace=namespace)

    said = control_plane.kubectl(
        *("apply", "--dry-run=server", "--validate=strict", "--filename=-"), stdin=chart.text
    )

    assert said.count("created (server dry run)") == len(chart.manifests) - 1
    assert f"namespace/{SELF_TEST_NAMESPACE} configured (server dry run)" in said


def test_api_server_refuses_a_misspelt_field_of_an_operators_kind(
    control_plane: Sandbox, namespace: str, render: Render
) -> None:
    (monitor,) = render(VALUES["monitored"], namespace=namespace).of_kind("PodMonitor").values()
    monitor["spec"]["podMetricEndpoints"] = monitor["spec"].pop("podMetricsEndpoints")

    with pytest.raises(SandboxError, match=r"unknown field .*podMetricEndpoints"):
        control_plane.kubectl(
            *("apply", "--dry-run=server", "--validate=strict", "--filename=-"),
            stdin=yaml.safe_dump(monitor),
        )


@pytest.mark.parametrize(
    "values", [pytest.param(VALUES[k], id=k) for k in ("defaults", "everything")]
)
def test_helm_finds_nothing_to_complain_of(
    helm: Path, tmp_path: Path, values: dict[str, Any]
) -> None:
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))

    said = subprocess.run(
        [str(helm), "lint", "--strict", str(CHART), f"--values={REQUIRED}", f"--values={file}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert 0 == said.returncode, said.stdout + said.stderr


def test_pods_are_restricted_enough(control_plane: Sandbox, chart: Rendered) -> None:
    """Pod Security Standards: <https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted>."""
    label = {"pod-security.kubernetes.io/enforce": "restricted"}
    make_namespaces(control_plane, {"chart-restricted": label})
    specs = {
        name: {**deployment["spec"]["template"]["spec"], "serviceAccountName": "default"}
        for name, deployment in chart.of_kind("Deployment").items()
    }
    pods = [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name, spec in specs.items()
    ]

    said = control_plane.kubectl(
        *("create", "--namespace=chart-restricted", "--dry-run=server", "--filename=-"),
        stdin=yaml.safe_dump_all(pods),
    )

    assert said.count("created (server dry run)") == len(DEPLOYMENTS)
    with pytest.raises(SandboxError, match="violates PodSecurity"):
        control_plane.kubectl(
            *("run", "root", "--image=none", "--namespace=chart-restricted", "--dry-run=server")
        )


async def test_certificates_are_kept_over_upgrades(
    control_plane: Sandbox, namespace: str, helm: Path, tmp_path: Path
) -> None:
    def run(verb: str, *arguments: str) -> None:
        flags = (f"--namespace={namespace}", f"--kubeconfig={control_plane.kubeconfig}")
        subprocess.run(
            [str(helm), verb, "slurm-bridge", *arguments, *flags],
            env={"HOME": str(tmp_path)},
            check=True,
            capture_output=True,
            timeout=60,
        )

    def certificates() -> list[object]:
        secrets = control_plane.admin.get(f"/api/v1/namespaces/{namespace}/secrets")["items"]
        admission = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
        webhooks = control_plane.admin.get(f"{admission}/slurm-bridge")["webhooks"]
        assert len({webhook["clientConfig"]["caBundle"] for webhook in webhooks}) == 1
        return [
            webhooks[0]["clientConfig"]["caBundle"],
            *(s["data"] for s in secrets if s["metadata"]["name"].startswith("slurm-bridge-")),
        ]

    run("install", str(CHART), f"--values={REQUIRED}")
    try:
        await sign(control_plane.kubeconfig, namespace)
        installed = certificates()
        run("upgrade", str(CHART), f"--values={REQUIRED}", "--set=webhook.replicas=3")
        upgraded = certificates()
    finally:
        run("uninstall", "--wait")

    assert len(installed) == 5
    assert upgraded == installed


async def sign(kubeconfig: Path, namespace: str) -> None:
    """What the controllers do first."""
    issued = CertificateSettings(
        release="slurm-bridge",
        namespace=namespace,
        hosts={"webhook": frozenset({"w"}), "extender": frozenset({"e"}), "scheduler": frozenset()},
        authority_lifetime=timedelta(days=300),
        lifetime=timedelta(days=90),
    )
    opened = KubeClient.open(str(kubeconfig), request_timeout_s=10, user_agent="controllers/test")
    async with opened as kube:
        signing = Certificates(kube, issued, clock=SystemClock(), metrics=Metrics("controllers"))
        while await signing.reconcile():
            pass


def test_scheduler_takes_its_profile(
    control_plane: Sandbox, chart: Rendered, render: Render, tmp_path: Path
) -> None:
    Authority().issue("scheduler").write(tmp_path, "tls")
    (tmp_path / "ca.crt").write_bytes(Authority().certificate)
    scheduler = {"kubeconfig": str(control_plane.kubeconfig), "tlsDirectory": str(tmp_path)}
    chart = render(OUTSIDE | {"scheduler": scheduler})
    profile = tmp_path / "scheduler.yaml"
    profile.write_text(chart.config("slurm-bridge-scheduler", "scheduler.yaml"))
    with assets.shown(sys.stderr) as report:
        programs = assets.resolve(assets.AssetName.KUBE, report=report).bin
    completed = tmp_path / "completed.yaml"

    done = subprocess.run(
        [
            str(programs / "kube-scheduler"),
            f"--config={profile}",
            f"--feature-gates={chart.config('slurm-bridge-scheduler', 'feature-gates')}",
            f"--write-config-to={completed}",
            "--cert-dir=",
        ],
        check=False,
        timeout=60,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    (known,) = yaml.safe_load(completed.read_text())["profiles"]
    enabled = {plugin["name"] for plugin in known["plugins"]["multiPoint"]["enabled"]}

    assert known["schedulerName"] == names.SCHEDULER_NAME
    assert {"SchedulingGates", "NodeResourcesFit", "NodeAffinity", "DefaultBinder"} <= enabled
    assert enabled.isdisjoint({"DefaultPreemption", "PodTopologySpread", "InterPodAffinity"}), (
        json.dumps(known["plugins"])
    )
