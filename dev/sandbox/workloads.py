"""Real controllers of workload kinds as parts: JobSet, LeaderWorkerSet, and coscheduling's PodGroup.

Set up like their own installations, as far as processes on one machine allow: their CRDs, their
admission webhooks with failurePolicy Fail, and the name of their service account (with an
administrator's rights).
"""

import base64
import json
import ssl
import time
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path

import yaml

from sandbox import identity, kubernetes, pki, probes
from sandbox.api import Api, ApiError
from sandbox.assets import Asset
from sandbox.assets.workloads import MANIFESTS
from sandbox.errors import SandboxError
from sandbox.instance import Instance, make_folder, write_private
from sandbox.options import WORKLOADS
from sandbox.part import Part
from slurmruntime.model.objects import JsonDict

JOBSET, LWS, COSCHEDULING = WORKLOADS
"""The parts have the same names."""

_ACCOUNTS = {
    JOBSET: "system:serviceaccount:jobset-system:jobset-controller-manager",
    LWS: "system:serviceaccount:lws-system:lws-controller-manager",
    COSCHEDULING: "system:serviceaccount:scheduler-plugins:controller",
}
_CONFIGURATIONS = {JOBSET: "config.jobset.x-k8s.io/v1alpha1", LWS: "config.lws.x-k8s.io/v1alpha1"}
_OF_THEIR_PODS = {JOBSET: "jobset.sigs.k8s.io/jobset-name", LWS: "leaderworkerset.sigs.k8s.io/name"}
"""The label to which their installations restrict the pods' webhooks; without it they would get
every pod.
"""

_CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/"
_CONFLICT = 409
_CRD_TIMEOUT_S = 60
_POLL_S = 0.05


def prepare(instance: Instance, now: datetime) -> None:
    """Create the controllers' credentials, certificates and configurations."""
    for name in instance.options.workloads:
        groups = ("system:masters",)
        kubernetes.credentials(instance, user=_ACCOUNTS[name], groups=groups, now=now, name=name)
        if name not in _CONFIGURATIONS:
            continue
        owner = identity.servers()
        folder = make_folder(_certificates(instance, name), owner)
        pair = pki.issue(kubernetes.authority(instance), name=name, now=now)
        write_private(folder / "tls.crt", pair.certificate, owner)
        write_private(folder / "tls.key", pair.key, owner)
        configuration = _configuration(instance, name)
        (instance.kube / f"{name}.json").write_text(json.dumps(configuration, indent=2))


def parts(instance: Instance, asset: Asset) -> tuple[Part, ...]:
    """Return a part for each requested controller.

    Raises:
        SandboxError: the programs came without their manifests.
    """
    return tuple(_part(instance, asset, name) for name in instance.options.workloads)


def _part(instance: Instance, asset: Asset, name: str) -> Part:
    manifests = asset.bin.parent / MANIFESTS / name
    if not manifests.is_dir():
        raise SandboxError(
            f"{name} from {asset.bin} has no CRDs: expected them in {manifests},"
            " as 'slurm-bridge sandbox fetch workloads' leaves them"
        )
    return Part(
        name=name,
        argv=(
            str(asset.bin / name),
            f"--kubeconfig={instance.kube / f'{name}.kubeconfig'}",
            *_flags(instance, name),
        ),
        identity=identity.servers(),
        folder=instance.kube,
        port=instance.ports[name if name in _CONFIGURATIONS else f"{name}-health"],
        answers=partial(_answers, instance, name, _hook_paths(manifests)),
        needs=("controller-manager",),
        prepare=partial(_create_kinds, instance, manifests),
        once_up=partial(_create_hooks, instance, name, manifests),
        restarts=True,
    )


def _answers(instance: Instance, name: str, hook_paths: tuple[str, ...]) -> bool:
    """Check whether it and its webhooks are ready.

    They listen before they serve their paths, and its readiness probe covers neither.
    """
    if not probes.says_yes(f"{instance.url(f'{name}-health')}/readyz"):
        return False
    authority = kubernetes.authority(instance).certificate.decode()
    context = ssl.create_default_context(cadata=authority)
    urls = (f"{instance.url(name, 'https')}{path}" for path in hook_paths)
    return all(probes.says_yes(url, context=context) for url in urls)


def _hook_paths(manifests: Path) -> tuple[str, ...]:
    configurations = manifests / "manifests.yaml"
    if not configurations.exists():
        return ()
    return tuple(
        hook["clientConfig"]["service"]["path"]
        for configuration in yaml.safe_load_all(configurations.read_text())
        for hook in configuration["webhooks"]
    )


def _flags(instance: Instance, name: str) -> tuple[str, ...]:
    config = f"--config={instance.kube / f'{name}.json'}"
    match name:
        case "coscheduling":
            health = f"--probeAddr=127.0.0.1:{instance.ports[f'{name}-health']}"
            return ("--metricsAddr=0", health, "--qps=200", "--burst=400")
        case "lws":
            return (config, "--metrics-bind-address=0", "--leader-elect=false")
        case _:
            return (config,)


def _configuration(instance: Instance, name: str) -> dict[str, object]:
    return {
        "apiVersion": _CONFIGURATIONS[name],
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "webhook": {
            "host": "127.0.0.1",
            "port": instance.ports[name],
            "certDir": str(_certificates(instance, name)),
        },
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": f"127.0.0.1:{instance.ports[f'{name}-health']}"},
    }


def _certificates(instance: Instance, name: str) -> Path:
    return instance.kube / f"{name}-certificates"


def _create_kinds(instance: Instance, manifests: Path) -> None:
    """Create the CRDs unless they exist, and wait until the API server serves them."""
    kinds = [
        document
        for document in _objects(manifests)
        if document["kind"] == "CustomResourceDefinition"
    ]
    with Api(instance.kubeconfig) as api:
        for kind in kinds:
            _create(api, _CRDS, kind)
        deadline_s = time.monotonic() + _CRD_TIMEOUT_S
        for kind in kinds:
            name = kind["metadata"]["name"]
            while not _is_established(api.get(f"{_CRDS}/{name}")):
                if time.monotonic() > deadline_s:
                    raise SandboxError(f"the API server does not serve {name}")
                time.sleep(_POLL_S)


def _is_established(kind: JsonDict) -> bool:
    conditions = kind.get("status", {}).get("conditions") or []  # null at first
    return any(c["type"] == "Established" and c["status"] == "True" for c in conditions)


def _create_hooks(instance: Instance, name: str, manifests: Path) -> None:
    """Create the webhook configurations, now that the controller answers: earlier they would refuse everything."""
    authority = base64.b64encode(kubernetes.authority(instance).certificate).decode()
    with Api(instance.kubeconfig) as api:
        for configuration in _objects(manifests):
            if configuration["kind"] == "CustomResourceDefinition":
                continue
            metadata = configuration["metadata"]
            metadata["name"] = f"{name}-{metadata['name']}"  # they all share one name
            for hook in configuration["webhooks"]:
                path = hook["clientConfig"]["service"]["path"]
                url = f"{instance.url(name, 'https')}{path}"
                hook["clientConfig"] = {"url": url, "caBundle": authority}
                if hook["rules"][0]["resources"] == ["pods"]:
                    theirs = {"key": _OF_THEIR_PODS[name], "operator": "Exists"}
                    hook["objectSelector"] = {"matchExpressions": [theirs]}
            _create(api, f"{_HOOKS}{configuration['kind'].lower()}s", configuration)


def _objects(manifests: Path) -> Iterator[JsonDict]:
    for file in sorted(manifests.glob("*.yaml")):
        yield from filter(None, yaml.safe_load_all(file.read_text()))


def _create(api: Api, path: str, body: JsonDict) -> None:
    try:
        api.create(path, body)
    except ApiError as error:
        if error.status != _CONFLICT:
            raise
