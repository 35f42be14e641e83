"""A whole life of the bridge, in which every right of its roles is used."""

import ssl
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import httpx

from controllers.webhook.certificates import Certificates, CertificateSettings
from sandbox import kubeconfig
from sandbox.client import Sandbox
from sandbox.options import Options
from slurmruntime.kube.client import KubeClient
from slurmruntime.process.clock import SystemClock
from slurmruntime.process.metrics import Metrics
from slurmruntime.values import names
from tests.chart.policed import OUTSIDE, apply, make_namespaces
from tests.chart.rendering import Manifest, render
from tests.chart.rights import (
    BUILT_IN,
    Rule,
    asked,
)
from tests.integration.tampering import tear
from tests.integration.volumes import a_volume, mounted
from tests.integration.worlds import Worlds, condition, container, played
from tests.servers import wait_until

SIGNER = "signer-slurm-bridge"
"""A second release, in the namespace of that name, whose controllers sign certificates: the sandbox brings its own."""


_POLICY = (
    "policy.rules=[{name: labelled, match: {namespace_labels: {"
    f'{names.ENABLED_LABEL}: "true"'
    "}}, user: kubernetes, group: kubernetes}]"
)


OPTIONS = Options(
    accounting=True,
    audit=True,
    feature_gates=("GenericWorkload", "GangScheduling"),
    settings=("controllers.eviction_always=1", _POLICY),
)


IN_TREE: Mapping[tuple[str, str, str], Manifest] = {
    ("scheduling.k8s.io", "v1alpha2", "podgroups"): {"schedulingPolicy": {"basic": {}}},
    ("scheduling.k8s.io", "v1alpha2", "workloads"): {
        "podGroupTemplates": [{"name": "a", "schedulingPolicy": {"basic": {}}}]
    },
}
"""Kinds of owners that no controller of Kubernetes makes pods for."""


def signs(rule: Rule) -> bool:
    """The signer's other rules are those of the sandbox's release under other names."""
    return (
        rule.role.endswith("-certificates")
        or "admissionregistration.k8s.io" in (rule.body["apiGroups"])
    )


def signer(helm: Path) -> list[Manifest]:
    nowhere = {
        "matchLabels": {names.ENABLED_LABEL: None},
        "matchExpressions": [{"key": "nobody", "operator": "Exists"}],
    }
    values = {**OUTSIDE, "tls": {"mode": "managed"}, "namespaceSelector": nowhere}
    rendered = render(helm, values, release=SIGNER, namespace=SIGNER)
    needed = ("Role", "RoleBinding", "ServiceAccount", "Secret", "WebhookConfiguration")
    return [
        m
        for m in rendered.manifests
        if m["kind"].endswith(needed) and m["metadata"].get("namespace") in {None, SIGNER}
    ]


def live(worlds: Worlds) -> None:
    """Pods that end by themselves, wait, are evicted; a node that is closed."""
    uid = worlds.submit("ends", annotations=played(seconds=1))
    assert "COMPLETED" == worlds.await_accounted(uid).state
    worlds.submit("held", annotations={f"{names.REQUEST_PREFIX}hold": "true"})
    worlds.await_pod("held", lambda pod: condition(pod).get("reason") == "JobHeldUser")
    uid = worlds.submit("runs")
    worlds.await_phase("runs", "Running")
    worlds.sandbox.run("scancel", str(worlds.await_live(uid).id))
    worlds.await_gone("runs")
    worlds.sandbox.kubectl("cordon", "node-3")
    worlds.sandbox.kubectl("uncordon", "node-3")


def own_pods(worlds: Worlds) -> None:
    """A pod of each kind of owner that the extender may read."""
    sandbox, there = worlds.sandbox, ("-n", worlds.namespace)
    pods = [own(worlds, *kind, spec) for kind, spec in IN_TREE.items()]
    sandbox.kubectl(*there, "create", "deployment", "deployed", "--image=none")
    sandbox.kubectl(*there, "create", "cronjob", "cron", "--image=none", "--schedule=0 0 1 1 *")
    sandbox.kubectl(*there, "create", "job", "now", "--from=cronjob/cron")
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()]}}
    sandbox.admin.create(
        f"/apis/apps/v1/namespaces/{worlds.namespace}/statefulsets",
        {
            "metadata": {"name": "stateful"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template},
        },
    )
    role = "/apis/rbac.authorization.k8s.io/v1/clusterroles/slurm-bridge-extender"
    kinds = [
        (rule["apiGroups"][0], plural)
        for rule in sandbox.admin.get(role)["rules"]
        for plural in rule["resources"]
    ]
    custom = [kind for kind in kinds if kind[0] not in BUILT_IN]
    crds = [definition(*kind) for kind in custom]
    apply(sandbox, crds)
    established = ("wait", "--for=condition=Established", "--timeout=60s")
    sandbox.kubectl(*established, *(f"crd/{crd['metadata']['name']}" for crd in crds))
    pods += [own(worlds, group, "v1", plural, {}) for group, plural in custom]
    for pod in pods:
        worlds.await_phase(pod, "Running", "Succeeded")
    for label in ("app=deployed", "job-name=now", "a=b"):
        worlds.await_one_pod(label, lambda pod: pod["status"]["phase"] == "Running")


def use_volumes(worlds: Worlds) -> None:
    """A pod whose one claim has a volume, and whose other claim waits for it."""
    waiting = {"provisioner": "example.test/none", "volumeBindingMode": "WaitForFirstConsumer"}
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    worlds.sandbox.admin.create(classes, {"metadata": {"name": "waiting"}, **waiting})
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Mi"}},
        "storageClassName": "waiting",
    }
    path = f"{worlds.path}/persistentvolumeclaims"
    worlds.sandbox.admin.create(path, {"metadata": {"name": "new"}, "spec": claim})
    with a_volume(worlds, "old"):
        held = {f"{names.REQUEST_PREFIX}hold": "true"}
        volumes = [mounted("old"), mounted("new")]
        worlds.await_live(worlds.submit("stores", volumes=volumes, annotations=held))


def definition(group: str, plural: str) -> Manifest:
    """A kind of that plural; nothing more is asked of it than to be there."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"},
        },
        "spec": {
            "group": group,
            "names": {"kind": plural.capitalize(), "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def own(worlds: Worlds, group: str, version: str, plural: str, spec: Manifest) -> str:
    """Create a pod that belongs to an object of that kind; its name."""
    where = f"{group}/{version}"
    name = f"{plural}-{group.replace('.', '-')}"
    kind = (
        {"podgroups": "PodGroup", "workloads": "Workload"}[plural] if spec else plural.capitalize()
    )
    owner = worlds.sandbox.admin.create(
        f"/apis/{where}/namespaces/{worlds.namespace}/{plural}",
        {"apiVersion": where, "kind": kind, "metadata": {"name": name}, "spec": spec},
    )
    reference = {
        "apiVersion": where,
        "kind": kind,
        "name": name,
        "uid": owner["metadata"]["uid"],
        "controller": True,
    }
    body = {
        "metadata": {
            "name": name,
            "ownerReferences": [reference],
            "annotations": played(seconds=1),
        },
        "spec": {"containers": [container()], "restartPolicy": "Never"},
    }
    worlds.sandbox.admin.create(f"{worlds.path}/pods", body)
    return name


def lose_a_pod(worlds: Worlds) -> None:
    """A placeholder without a pod: both sides are asked before it is cancelled."""
    uid = worlds.submit("torn")
    worlds.await_phase("torn", "Running")
    tear(worlds, "torn")
    assert "CANCELLED" == worlds.await_accounted(uid).state


def bind_an_unknown_pod(worlds: Worlds) -> None:
    """The extender's watch may lag behind its own patch: it looks before it refuses to bind."""
    instance = worlds.sandbox.instance
    folder = instance.bridge / "scheduler"
    trusting = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    trusting.load_cert_chain(folder / "tls.crt", folder / "tls.key")
    asked_for = {"PodNamespace": worlds.namespace, "PodName": "unknown", "PodUID": "u", "Node": "n"}
    answer = httpx.post(
        f"{instance.url('extender', 'https')}/v1/bind",
        json=asked_for,
        verify=trusting,
        trust_env=False,
        timeout=30,
    )
    assert answer.json()["Error"]


def hold_back(worlds: Worlds) -> None:
    """Too many pods lose their placeholders at once: the controllers ask for an operator's word."""
    doomed = [f"doomed-{number}" for number in range(3)]
    uids = [worlds.submit(name) for name in doomed]
    for name in doomed:
        worlds.await_phase(name, "Running")
    nodes = {worlds.await_live(uid).nodes for uid in uids}
    worlds.sandbox.stop("controllers")  # seen one after the other they would be few each time
    for node in nodes:
        worlds.scontrol("update", f"nodename={node}", "state=DOWN", "reason=lost")
    for uid in uids:
        worlds.await_accounted(uid)
    worlds.sandbox.start("controllers")
    read = ("get", "namespaces", names.RELEASE_NAMESPACE)
    wait_until(lambda: any((u.verb, u.resource, u.name) == read for u in asked(worlds.sandbox)), 60)
    for node in nodes:
        worlds.scontrol("update", f"nodename={node}", "state=RESUME")


async def sign(sandbox: Sandbox, helm: Path) -> None:
    """Certificates signed and published with the token of the second release's controllers."""
    make_namespaces(sandbox, {SIGNER: {}})
    apply(sandbox, signer(helm))
    account = f"/api/v1/namespaces/{SIGNER}/serviceaccounts/{SIGNER}-controllers/token"
    token = sandbox.instance.kube / "signer"
    token.write_text(sandbox.admin.create(account, {})["status"]["token"])
    path = kubeconfig.with_token_file(
        token.with_suffix(".kubeconfig"),
        server=sandbox.instance.url("apiserver", "https"),
        ca=(sandbox.instance.kube / "ca.crt").read_bytes(),
        token_file=token,
    )
    hosts = {
        "webhook": frozenset({"w"}),
        "extender": frozenset({"e"}),
        "scheduler": frozenset[str](),
    }
    issued = CertificateSettings(
        release=SIGNER,
        namespace=SIGNER,
        hosts=hosts,
        authority_lifetime=timedelta(days=300),
        lifetime=timedelta(days=90),
    )
    opened = KubeClient.open(str(path), request_timeout_s=10, user_agent="controllers/test")
    async with opened as kube:
        signing = Certificates(kube, issued, clock=SystemClock(), metrics=Metrics("controllers"))
        while await signing.reconcile():
            pass
