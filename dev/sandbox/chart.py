"""The bridge's Kubernetes objects from `deploy/chart`, as in a cluster, for processes outside of it.

Rendered with `workloads.enabled=false` (no Deployments, Services, image), addresses by URL, and our
own certificates.
"""

import json
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import yaml

from sandbox import identity, kubeconfig, kubernetes, nss, pki, slurm_conf
from sandbox.api import Api, ApiError
from sandbox.errors import SandboxError
from sandbox.identity import Identity
from sandbox.instance import Instance, make_folder, write_private
from slurmruntime.model.objects import JsonDict
from slurmruntime.values import names

CHART = Path(__file__).parents[2] / "deploy" / "chart"
NAMESPACE = names.RELEASE_NAMESPACE
RELEASE = "slurm-bridge"
BATCH_USER = nss.PEOPLE[0]
"""The Slurm user of the administrator's SlurmJobs in a sandbox with compute nodes."""
_TIMEOUT_S = 60
_CONFLICT = 409
_KNOWS_BACKOFF_GATE = 33
"""The minor version of Kubernetes from which on kube-scheduler starts with the chart's gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartOutput:
    """The parts of the manifests that the services' processes need."""

    settings: JsonDict
    """config.yaml as every service would mount it."""
    scheduler_config: str
    feature_gates: str


def prepare(instance: Instance, now: datetime) -> None:
    """Create the services' certificates.

    The scheduler's is signed by a separate CA, the only one the extender trusts.
    """
    serving, clients = pki.authority(now), pki.authority(now)
    (instance.bridge / "serving-ca.crt").write_bytes(serving.certificate)
    for name in ("webhook", "extender", "controllers"):
        folder = make_folder(instance.bridge / name, identity.caller())
        _write_pair(folder, pki.issue(serving, name=f"{RELEASE}-{name}", now=now), clients)
    folder = make_folder(instance.bridge / "scheduler", identity.servers())
    _write_pair(folder, pki.issue(clients, name=f"{RELEASE}-scheduler", now=now), serving)


def _write_pair(folder: Path, pair: pki.Pair, trusted: pki.Pair) -> None:
    owner = identity.servers() if folder.name == "scheduler" else identity.caller()
    write_private(folder / "tls.crt", pair.certificate, owner)
    write_private(folder / "tls.key", pair.key, owner)
    write_private(folder / "ca.crt", trusted.certificate, owner)


def render(instance: Instance, user: Identity, kube_version: str) -> ChartOutput:
    """Render the manifests with helm.

    Args:
        instance: the sandbox.
        user: the account that placeholders run as.
        kube_version: of the API server, such as `1.36.4`.

    Raises:
        SandboxError: helm failed, or there is no chart.
    """
    if not CHART.is_dir():
        raise SandboxError(f"no chart in {CHART}: run the sandbox from a checkout of the project")
    values = instance.bridge / "values.json"
    values.write_text(json.dumps(_values(instance, user, kube_version), indent=2))
    where = ("--namespace", NAMESPACE, "--values", str(values), "--kube-version", kube_version)
    manifests = run(instance, "helm", "template", RELEASE, str(CHART), *where)
    _manifests(instance).write_text(manifests)
    objects = [document for document in yaml.safe_load_all(manifests) if document]
    data = {o["metadata"]["name"]: o["data"] for o in objects if o["kind"] == "ConfigMap"}
    scheduler = data[f"{RELEASE}-scheduler"]
    return ChartOutput(
        settings=yaml.safe_load(data[f"{RELEASE}-config"]["config.yaml"]),
        scheduler_config=scheduler["scheduler.yaml"],
        feature_gates=scheduler["feature-gates"],
    )


def apply(instance: Instance) -> None:
    """Create the manifests' objects, unless they were created before.

    Raises:
        SandboxError: the API server refused.
    """
    done = instance.bridge / "applied"
    if done.exists():
        return
    manifests = yaml.safe_load_all(_manifests(instance).read_text())
    roles = [
        manifest["metadata"] for manifest in manifests if manifest and manifest["kind"] == "Role"
    ]
    for namespace in {NAMESPACE, *(role["namespace"] for role in roles)}:
        make_namespace(instance, namespace)
    run(instance, "kubectl", "apply", "--server-side", "--filename", str(_manifests(instance)))
    done.touch()


def make_namespace(instance: Instance, name: str = NAMESPACE) -> None:
    """Create a namespace unless it exists; by default the one our programs have in a cluster.

    Raises:
        SandboxError: the API server refused.
    """
    with Api(instance.kubeconfig) as api:
        try:
            api.create("/api/v1/namespaces", {"metadata": {"name": name}})
        except ApiError as error:
            if error.status != _CONFLICT:
                raise


def credentials(instance: Instance, component: str) -> Path:
    """Return a kubeconfig with the token of a component's service account, created once.

    Raises:
        SandboxError: the API server refused.
    """
    path = instance.bridge / component / "kubeconfig"
    if path.exists():
        return path
    owner = identity.servers() if component == "scheduler" else identity.caller()
    account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{RELEASE}-{component}"
    lifetime_s = int(pki.LIFETIME.total_seconds())
    with Api(instance.kubeconfig) as api:
        answer = api.create(f"{account}/token", {"spec": {"expirationSeconds": lifetime_s}})
    token = write_private(path.with_name("token"), answer["status"]["token"], owner)
    return kubeconfig.with_token_file(
        path,
        server=instance.url("apiserver", "https"),
        ca=kubernetes.authority(instance).certificate,
        token_file=token,
        owner=owner,
    )


def gates(wanted: Iterable[str], kube_version: str) -> dict[str, bool | None]:
    """Return the chart's scheduler.featureGates; None removes a default that the version lacks."""
    minor = int(kube_version.split(".")[1])
    unknown = {} if minor >= _KNOWS_BACKOFF_GATE else {"SchedulerPopFromBackoffQ": None}
    return {**unknown, **dict.fromkeys(wanted, True)}


def _values(instance: Instance, user: Identity, kube_version: str) -> JsonDict:
    bridge = instance.bridge
    certificate = (bridge / "serving-ca.crt").read_text()
    values: JsonDict = {
        "workloads": {"enabled": False, "together": instance.options.together},
        "config": {
            "slurm": {
                "url": instance.url("slurmrestd"),
                "controller_host": "127.0.0.1",
                "controller_port": instance.ports["slurmctld"],
                "kick": True,
                "partition": slurm_conf.PARTITION,
                "user": user.name,
                "group": user.name,
                "account": nss.JOB_USER.name if instance.options.accounting else "",
            },
            "nodes": {"hybrid": "escrow" if instance.options.escrow else "acceptOverlap"},
        },
        "escrow": {"hosts": ["127.0.0.1"]},
        "tls": {
            "mode": "secret",
            "secrets": {"webhook": "files", "extender": "files", "scheduler": "files"},
            "caBundle": certificate,
        },
        "webhook": {"url": instance.url("webhook", "https")},
        "extender": {"url": instance.url("extender", "https")},
        "scheduler": {
            "kubeconfig": str(bridge / "scheduler" / "kubeconfig"),
            "tlsDirectory": str(bridge / "scheduler"),
            "leaderElect": instance.options.audit,  # not needed by a single instance, but its lease would go untested
            "featureGates": gates(instance.options.feature_gates, kube_version),
        },
    }
    if instance.options.compute:
        values["config"].update(_batch(instance, user))
    settings = (f"config.{setting}" for setting in instance.options.settings)
    set_values(values, (*settings, *instance.options.values))
    if values["config"]["slurm"].get("controller"):
        for of_this_host in ("url", "controller_host", "controller_port", "kick", "account"):
            values["config"]["slurm"].pop(of_this_host, None)
    return values


def set_values(values: JsonDict, chosen: Iterable[str]) -> None:
    """Set values of the chart in place; each is written as for helm: `admission.calls=one`."""
    for choice in chosen:
        name, _, value = choice.partition("=")
        *sections, field = name.split(".")
        section = values
        for section_name in sections:
            section = section.setdefault(section_name, {})
        section[field] = yaml.safe_load(value)


def _batch(instance: Instance, user: Identity) -> JsonDict:
    """Return the settings for SlurmJobs. The administrator's run as an ordinary Slurm user; pods run as without rules."""
    account = {"default": nss.JOB_USER.name} if instance.options.accounting else {}
    administrators = {
        "name": "administrators",
        "match": {"kinds": ["SlurmJob"], "groups": ["system:masters"]},
        "user": BATCH_USER.name,
        "account": account,
        "partition": {"default": slurm_conf.COMPUTE},
        "working_directory": str(instance.shared / "{slurm_user}"),
    }
    pods = {"name": "pods", "user": user.name, "group": user.name, "account": account}
    return {"slurm_jobs": {"enabled": True}, "policy": {"rules": [administrators, pods]}}


def arguments(program: str) -> tuple[str, ...]:
    """Return those of a program that the chart writes into its Deployments."""
    companions = f"--companion-account=system:serviceaccount:{NAMESPACE}:{RELEASE}-companions"
    tested = f"--self-test-namespace={RELEASE}-self-test"
    return (tested, companions) if program != "webhook" else (tested,)


def _manifests(instance: Instance) -> Path:
    return instance.bridge / "manifests.yaml"


def run(instance: Instance, *command: str) -> str:
    """Run one of the sandbox's programs as the administrator; return its output.

    Raises:
        SandboxError: the exit code is not 0.
    """
    done = subprocess.run(
        (str(instance.bin / command[0]), *command[1:]),
        env={
            "PATH": "/usr/bin:/bin",
            "HOME": str(instance.bridge),
            "KUBECONFIG": str(instance.kubeconfig),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_S,
    )
    if done.returncode != 0:
        raise SandboxError(f"{' '.join(command[:3])}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout
