"""A real API server with the chart's policies and roles, and the people and programs that meet there.

There is no webhook: pods of bridged namespaces come with what it would give them (`pod(ours=True)`).
"""

import json
import subprocess
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from sandbox import kubeconfig
from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.chart.rendering import Manifest, render
from tests.servers import wait_until

RELEASE = "slurm-bridge"
BREAK_GLASS = "slurm-bridge:break-glass"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
EFFECTIVE_S = 30
"""The API server takes a new policy up within a few seconds."""
OUTSIDE = {
    "workloads": {"enabled": False},
    "tls": {"mode": "secret", "caBundle": "PEM"},
    "webhook": {"url": "https://127.0.0.1:1"},
}
_APPLIED = {
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}


def pod(
    name: str = "p",
    *,
    ours: bool = True,
    metadata: Mapping[str, Any] | None = None,
    spec: Mapping[str, Any] | None = None,
) -> Manifest:
    """A pod; `ours`: as the webhook leaves it."""
    marks: dict[str, Any] = {"finalizers": [names.FINALIZER]} if ours else {}
    labels = {names.BRIDGED_LABEL: "true"} if ours else {}
    asks: dict[str, Any] = (
        {"schedulerName": names.SCHEDULER_NAME, "schedulingGates": [{"name": names.GATE}]}
        if ours
        else {}
    )
    container = {
        "name": "main",
        "image": "example.test/image",
        "resources": {"requests": {"cpu": "1"}},
    }
    given = dict(metadata or {})
    given["labels"] = {**labels, **given.get("labels", {})}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **marks, **given},
        "spec": {"containers": [container], **asks, **(spec or {})},
    }


def unlabelled(name: str = "unlabelled") -> Manifest:
    """As an older release handed it over, or as another webhook leaves it that takes labels off."""
    body = pod(name)
    del body["metadata"]["labels"]
    return body


_REFUSED = pod("probe", ours=False, metadata={"labels": {names.JOB_ID_LABEL: "7"}})
"""Refused by policy `bypass`, whoever mutates pods."""


def assignment(pod: Manifest, node: str) -> list[dict[str, object]]:
    """The extender's patch of a pod whose only gate is ours: job id, node, pin, gate."""
    labels = {**pod["metadata"].get("labels", {}), names.JOB_ID_LABEL: "4711"}
    annotations = {**pod["metadata"].get("annotations", {}), names.NODE_ANNOTATION: node}
    pin = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [pin]}}
    return [
        {"op": "add", "path": "/metadata/labels", "value": labels},
        {"op": "add", "path": "/metadata/annotations", "value": annotations},
        {"op": "add", "path": "/spec/affinity", "value": {"nodeAffinity": required}},
        {"op": "remove", "path": "/spec/schedulingGates/0"},
    ]


def binding(name: str, node: str) -> Manifest:
    """What a scheduler posts."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    return {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}


def pods(namespace: str, name: str = "", subresource: str = "") -> str:
    """A path."""
    parts = ("/api/v1/namespaces", namespace, "pods", name, subresource)
    return "/".join(part for part in parts if part)


@dataclass(slots=True)
class Cluster:
    """Who is there, and where."""

    sandbox: Sandbox
    ours: str
    """The release's namespace."""
    bridged: str
    """A labelled namespace."""
    other: str
    """A namespace without the label."""
    callers: dict[tuple[str, ...], Api] = field(default_factory=dict)

    @property
    def admin(self) -> Api:
        """In system:masters."""
        return self.sandbox.admin

    def user(self, name: str = "alice", *groups: str) -> Api:
        """By client certificate. Alice has `edit` in both namespaces."""
        key = (name, *groups)
        if key not in self.callers:
            self.callers[key] = Api(self.sandbox.user_kubeconfig(name, *groups))
        return self.callers[key]

    def credentials(self, component: str) -> Path:
        """A kubeconfig with a token of a component's service account, which has no right but the chart's."""
        account = f"/api/v1/namespaces/{self.ours}/serviceaccounts/{RELEASE}-{component}"
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
        token = self.admin.create(f"{account}/token", request)["status"]["token"]
        instance = self.sandbox.instance
        file = instance.kube / f"chart-{component}"
        file.write_text(token)
        return kubeconfig.with_token_file(
            file.with_suffix(".kubeconfig"),
            server=instance.url("apiserver", "https"),
            ca=(instance.kube / "ca.crt").read_bytes(),
            token_file=file,
        )

    def program(self, component: str) -> Api:
        """One of our programs."""
        key = ("program", component)
        if key not in self.callers:
            self.callers[key] = Api(self.credentials(component))
        return self.callers[key]

    def known(self, who: str) -> Api:
        """alice, admin, or one of our programs."""
        people = {"alice": self.user, "admin": lambda: self.admin}
        return people[who]() if who in people else self.program(who)

    def create(self, body: Manifest, *, namespace: str = "", by: Api | None = None) -> str:
        """Create a pod; its name."""
        created = (by or self.user()).create(pods(namespace or self.bridged), body)
        return str(created["metadata"]["name"])

    def assign(self, name: str, node: str) -> None:
        """What the extender does when Slurm has started the job of a pod in the bridged namespace."""
        extender, path = self.program("extender"), pods(self.bridged, name)
        patch = assignment(extender.get(path), node)
        extender.request("PATCH", path, patch, content_type=JSON_PATCH)

    def warnings(self, body: Manifest, namespace: str) -> str:
        """What kubectl tells alice beside creating the pod (dry run)."""
        done = subprocess.run(
            [
                str(self.sandbox.instance.bin / "kubectl"),
                f"--kubeconfig={self.sandbox.user_kubeconfig('alice')}",
                f"--namespace={namespace}",
                *("create", "--dry-run=server", "--filename=-"),
            ],
            input=json.dumps(body),
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr


def refusal(api: Api, method: str, path: str, body: object, *, strategic: bool = False) -> str:
    """What the API server says against it, "" if nothing; nothing is changed (dry run).

    A PATCH is a JSON patch if it is a list, else a merge patch.
    """
    content_type = "application/json"
    if method == "PATCH":
        merge = "strategic-merge" if strategic else "merge"
        kind = "json" if isinstance(body, list) else merge
        content_type = f"application/{kind}-patch+json"
    try:
        api.request(method, path, body, content_type=content_type, params={"dryRun": "All"})
    except ApiError as error:
        return error.message
    return ""


def apply(sandbox: Sandbox, manifests: Sequence[Manifest]) -> None:
    """As an administrator would, checking every field."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    sandbox.kubectl("apply", "--validate=strict", "--filename=-", stdin=json.dumps(items))


def policies(
    helm: Path, namespace: str, values: Mapping[str, Any], *, release: str = RELEASE
) -> list[Manifest]:
    """The chart's policies with their bindings, roles and accounts; no webhook, as none runs."""
    rendered = render(helm, {**OUTSIDE, **values}, release=release, namespace=namespace)
    here = {None, namespace, "kube-system"}
    return [
        m
        for m in rendered.manifests
        if m["kind"] in _APPLIED and m["metadata"].get("namespace") in here
    ]


@contextmanager
def policed(
    sandbox: Sandbox,
    helm: Path,
    extra: Callable[[Cluster], Sequence[Manifest]] = lambda _: (),
    values: Mapping[str, Any] = MappingProxyType({}),
) -> Iterator[Cluster]:
    """The chart's policies in force, and `extra` objects too; all is as before at the end."""
    suffix = uuid.uuid4().hex[:6]
    cluster = Cluster(
        sandbox=sandbox,
        ours=f"{RELEASE}-{suffix}",
        bridged=f"bridged-{suffix}",
        other=f"other-{suffix}",
    )
    namespaces = {
        cluster.ours: {names.ENABLED_LABEL: "true"},  # by mistake
        cluster.bridged: {names.ENABLED_LABEL: "true"},
        cluster.other: {},
    }
    make_namespaces(sandbox, namespaces)
    for namespace in (cluster.bridged, cluster.other):
        sandbox.kubectl(
            "create", "rolebinding", "edit", "--clusterrole=edit", "--user=alice", "-n", namespace
        )
    manifests = [*extra(cluster), *policies(helm, cluster.ours, values)]
    probe = [m for m in manifests if m["metadata"]["name"] == f"{RELEASE}-bypass"][-1]
    apply(sandbox, [m for m in manifests if m is not probe])
    apply(sandbox, [probe])  # seen last: once it works, all do
    wait_until(
        lambda: refusal(cluster.user(), "POST", pods(cluster.bridged), _REFUSED), EFFECTIVE_S
    )
    try:
        yield cluster
    finally:
        for caller in cluster.callers.values():
            caller.close()
        _delete(sandbox, [m for m in manifests if m is not probe])
        _delete(sandbox, [probe])  # forgotten last, as a rule
        path = pods(cluster.bridged)
        wait_until(lambda: not refusal(sandbox.admin, "POST", path, _REFUSED), EFFECTIVE_S)
        _clear(sandbox, cluster)


def make_namespaces(sandbox: Sandbox, namespaces: Mapping[str, Mapping[str, str]]) -> None:
    """Name to labels; returns when pods can be created there."""
    for name, labels in namespaces.items():
        metadata = {"name": name, "labels": dict(labels)}
        apply(sandbox, [{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}])
    for name in namespaces:
        account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        wait_until(lambda: not refusal(sandbox.admin, "GET", account, None), 20, sandbox=sandbox)  # noqa: B023  # called at once


def _delete(sandbox: Sandbox, manifests: Sequence[Manifest]) -> None:
    items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
    sandbox.kubectl("delete", "--wait=false", "--filename=-", stdin=json.dumps(items))


def _clear(sandbox: Sandbox, cluster: Cluster) -> None:
    free = {"metadata": {"finalizers": None}}
    for item in sandbox.admin.get(pods(cluster.bridged))["items"]:
        path = pods(cluster.bridged, item["metadata"]["name"])
        # The API server may forget another policy later than the probe.
        is_free = lambda: not refusal(sandbox.admin, "PATCH", path, free)  # noqa: B023, E731  # called at once
        wait_until(is_free, EFFECTIVE_S)
        sandbox.admin.patch(path, free)
    for namespace in (cluster.bridged, cluster.other, cluster.ours):
        sandbox.admin.delete(f"/api/v1/namespaces/{namespace}")
