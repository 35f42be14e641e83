"""The rules of our roles, and what was asked of the API server by whose right."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sandbox.client import Sandbox
from tests.chart.rendering import Manifest

BUILT_IN = {"", "apps", "batch", "events.k8s.io", "scheduling.k8s.io", "storage.k8s.io"}
"""API groups that Kubernetes itself serves: for kinds of others this test defines what they need."""


@dataclass(frozen=True, slots=True)
class Use:
    """A request that was allowed, and by which role."""

    role: str
    """`ClusterRole slurm-bridge-extender`."""
    verb: str
    group: str
    resource: str
    name: str
    namespace: str
    user: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a role of ours."""

    role: str
    namespace: str
    """"" for a ClusterRole."""
    number: int
    body: Mapping[str, Any]

    def rights(self) -> Iterator[tuple[str, str, str]]:
        """Each verb, group and resource."""
        for group in self.body["apiGroups"]:
            for resource in self.body["resources"]:
                for verb in self.body["verbs"]:
                    yield verb, group, resource

    def covers(self, use: Use) -> bool:
        """Whether it was this rule's right."""
        asked = (use.verb, use.group, use.resource)
        named = self.body.get("resourceNames")
        return self.role == use.role and asked in self.rights() and (not named or use.name in named)


def rules_in(manifests: Iterable[Manifest]) -> Sequence[Rule]:
    return [
        Rule(
            role=f"{role['kind']} {role['metadata']['name']}",
            namespace=role["metadata"].get("namespace", ""),
            number=number,
            body=rule,
        )
        for role in manifests
        if role["kind"] in {"Role", "ClusterRole"}
        for number, rule in enumerate(role["rules"])
    ]


def asked(sandbox: Sandbox) -> Sequence[Use]:
    """What the service accounts were allowed; nothing may have been refused."""
    uses = set()
    for line in sandbox.instance.audit_log.read_text().splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue  # the last line is being written
        said, what = event.get("annotations", {}), event.get("objectRef", {})
        if event["user"]["username"].endswith("-scheduler") and "resource" not in what:
            continue
        assert "allow" == said["authorization.k8s.io/decision"], event
        by = said["authorization.k8s.io/reason"].partition(" of ")[2].partition(" to ")[0]
        resource = "/".join(filter(None, (what.get("resource"), what.get("subresource"))))
        uses.add(
            Use(
                role=by.replace('"', ""),
                verb=event["verb"],
                group=what.get("apiGroup", ""),
                resource=resource,
                name=what.get("name", ""),
                namespace=what.get("namespace", ""),
                user=event["user"]["username"],
                groups=tuple(event["user"]["groups"]),
            )
        )
    return sorted(uses, key=repr)


def are_refused(sandbox: Sandbox, uses: Iterable[Use]) -> bool:
    """Whether all of it would be."""
    return not any(is_allowed(sandbox, use) for use in uses)


def is_allowed(sandbox: Sandbox, use: Use) -> bool:
    """What the API server's authorizer says of the same request, now."""
    resource, _, subresource = use.resource.partition("/")
    attributes = {
        "verb": use.verb,
        "group": use.group,
        "resource": resource,
        "subresource": subresource,
        "name": use.name,
        "namespace": use.namespace,
    }
    spec = {"resourceAttributes": attributes, "user": use.user, "groups": list(use.groups)}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    return bool(sandbox.admin.create(path, {"spec": spec})["status"]["allowed"])


@contextmanager
def taken_away(sandbox: Sandbox, rule: Rule) -> Iterator[None]:
    """Leave the rule out of its role for a while."""
    kind, _, name = rule.role.partition(" ")
    where = f"namespaces/{rule.namespace}/" if rule.namespace else ""
    path = f"/apis/rbac.authorization.k8s.io/v1/{where}{kind.lower()}s/{name}"
    before = sandbox.admin.get(path)["rules"]
    sandbox.admin.patch(path, {"rules": [one for one in before if one != rule.body]})
    try:
        yield
    finally:
        sandbox.admin.patch(path, {"rules": before})
