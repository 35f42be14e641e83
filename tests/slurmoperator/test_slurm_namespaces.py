"""Who may have a Slurm in pods: the chart's policy on a real API server, against people who have all rights but over the namespace itself."""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml

from deploy import manifests
from sandbox.client import Sandbox
from tests.attacks import attack
from tests.servers import fresh_namespace, wait_until
from tests.slurmoperator.examples import BY_NAME, Manifest, manifest, path
from tests.slurmoperator.people import EFFECTIVE_S, editor, told
from tests.slurmoperator.served import KINDS

LABEL = "slurm-bridge.dev/slurm-clusters"
REFUSED = "is none for Slurm in pods"
APPLY = "application/apply-patch+yaml"
PRIVILEGED = {
    "slurmd": {"image": "sh", "securityContext": {"privileged": True}},
    "template": {
        "spec": {"hostPID": True, "volumes": [{"name": "host", "hostPath": {"path": "/"}}]}
    },
}


def asked(kind: str, namespace: str, spec: Mapping[str, Any] | None = None) -> Manifest:
    wanted = manifest(kind, **(spec or {}))
    wanted["metadata"]["namespace"] = namespace
    return wanted


def is_of_namespaces(made: Manifest, kind: str) -> bool:
    return made["kind"] == kind and str(made["metadata"]["name"]).endswith("-namespaces")


@pytest.fixture
def ordinary(served: Sandbox) -> Iterator[str]:
    """A namespace that no administrator has labelled, where the policy denies."""
    made = list(yaml.safe_load_all(manifests.OPERATOR_FILE.read_text()))
    policy, binding = (
        copy.deepcopy(next(each for each in made if each and is_of_namespaces(each, kind)))
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    )
    with fresh_namespace(served, labels={}) as name:
        # Other tests share this API server, so it holds here only.
        here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [name]}
        binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"].append(here)
        binding["spec"]["validationActions"] = ["Deny"]
        both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [policy, binding]})
        served.kubectl("apply", "--validate=strict", "--filename=-", stdin=both)
        tokens = path(BY_NAME["Token"], name)
        wait_until(lambda: told(served.admin, "POST", tokens, asked("Token", name)), EFFECTIVE_S)
        try:
            yield name
        finally:
            served.kubectl("delete", "--filename=-", stdin=both)


def labelled(served: Sandbox, namespace: str, value: str | None) -> None:
    served.admin.patch(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": {LABEL: value}}})
    where = path(BY_NAME["Token"], namespace)
    wait_until(
        lambda: bool(value) != bool(told(served.admin, "POST", where, asked("Token", namespace))),
        EFFECTIVE_S,
    )


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        attack(
            "privileged workers",
            "with `edit` and rights over NodeSets in an ordinary namespace, be root on a node by a NodeSet whose template is privileged and mounts the host",
            "slurm-operator's policy `namespaces`, with the action Deny",
            "NodeSet",
            PRIVILEGED,
        ),
        attack(
            "a login pod",
            "the same by a LoginSet",
            "slurm-operator's policy `namespaces`, with the action Deny",
            "LoginSet",
            {"template": PRIVILEGED["template"]},
        ),
        attack(
            "prologs and keys of one's own",
            "the same by a Controller whose `prologScriptRefs` and `jwtKeyRef` name a ConfigMap and a Secret of one's own",
            "slurm-operator's policy `namespaces`, with the action Deny",
            "Controller",
            {
                "prologScriptRefs": [{"name": "mine"}],
                "jwtKeyRef": {"name": "mine", "key": "jwt.key"},
            },
        ),
        attack(
            "a token of root",
            "have a Token of root signed with a key of one's own in an ordinary namespace",
            "slurm-operator's policy `namespaces`, with the action Deny; and `operator.token_users`",
            "Token",
            {"username": "root"},
        ),
    ],
)
async def test_without_the_label_nobody_has_anything_made(
    served: Sandbox, ordinary: str, kind: str, spec: Mapping[str, Any]
) -> None:
    with editor(served, ordinary, also=KINDS) as eve:
        where = path(BY_NAME[kind], ordinary)
        wanted = asked(kind, ordinary, spec)

        assert REFUSED in told(eve, "POST", where, wanted)
        assert f"kubectl label namespace {ordinary} {LABEL}=true" in told(
            eve, "POST", where, wanted
        )
        name = wanted["metadata"]["name"]
        applied = {"fieldManager": "eve"}
        assert REFUSED in told(
            eve, "PATCH", f"{where}/{name}", wanted, content_type=APPLY, params=applied
        )
        assert REFUSED in told(served.admin, "POST", where, wanted)  # nor by mistake


@pytest.mark.attack(
    "set the label by which a namespace may have a Slurm",
    "role: neither `edit` nor `admin` may change namespaces",
)
async def test_who_may_edit_a_namespace_does_not_label_it(served: Sandbox, ordinary: str) -> None:
    label = {"metadata": {"labels": {LABEL: "true"}}}
    for role in ("edit", "admin"):
        with editor(served, ordinary, also=KINDS, role=role) as eve:
            said = told(
                eve,
                "PATCH",
                f"/api/v1/namespaces/{ordinary}",
                label,
                content_type="application/merge-patch+json",
            )
            assert 'cannot patch resource "namespaces"' in said


@pytest.mark.attack(
    "change a NodeSet from before its namespace lost the label",
    "slurm-operator's policy `namespaces` holds for UPDATE, too: only metadata, status and scale can change",
)
async def test_what_was_there_before_can_be_taken_away_and_not_changed(
    served: Sandbox, ordinary: str
) -> None:
    labelled(served, ordinary, "true")
    where = path(BY_NAME["NodeSet"], ordinary)
    with editor(served, ordinary, also=KINDS) as eve:
        # With the label all is as the namespace's people want it: the label is the administrator's word that they may.
        made = eve.create(where, asked("NodeSet", ordinary, PRIVILEGED))
        name = made["metadata"]["name"]
        labelled(served, ordinary, None)

        merge = "application/merge-patch+json"
        one = f"{where}/{name}"
        assert REFUSED in told(
            eve, "PATCH", one, {"spec": {"slurmd": {"image": "sh2"}}}, content_type=merge
        )
        for mine in (
            {"metadata": {"finalizers": ["slurm-bridge.dev/workers"]}},
            {"metadata": {"finalizers": None}},
        ):
            assert not told(served.admin, "PATCH", one, mine, content_type=merge)
        status = {"status": {"replicas": 0}}
        assert not told(served.admin, "PATCH", f"{one}/status", status, content_type=merge)
        eve.delete(one)
