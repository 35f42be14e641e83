"""Prologs only from ConfigMaps whose contents the Controller's owner decides on: the chart's policy on a real API server."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from deploy import manifests
from sandbox.client import Sandbox
from tests.attacks import attack
from tests.servers import fresh_namespace, wait_until
from tests.slurmoperator.examples import BY_NAME, manifest, path
from tests.slurmoperator.people import EFFECTIVE_S, editor, told

LABEL = "slurm-bridge.dev/slurm-clusters"
REFUSED = "only who may change that Controller"
MERGE = "application/merge-patch+json"
EVIL = {"data": {"evil.sh": "#!/bin/sh\nid\n"}}


def config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"a": "b"},
    }


@pytest.fixture(scope="module")
def guarded(served: Sandbox) -> Iterator[str]:
    """A labelled namespace with a Controller, where the policy is in force."""
    made = [each for each in yaml.safe_load_all(manifests.OPERATOR_FILE.read_text()) if each]
    policy, binding = (
        copy.deepcopy(
            next(
                each
                for each in made
                if each["kind"] == kind and each["metadata"]["name"].endswith("-files")
            )
        )
        for kind in ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
    )
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [policy, binding]})
    with fresh_namespace(served, labels={LABEL: "true"}) as name:
        spec = {
            "prologScriptRefs": [{"name": "prologs"}],
            "epilogScriptRefs": None,
            "configFileRefs": [{"name": "files"}],
            "jwksKeyRef": {"name": "keys", "key": "jwks.json"},
        }
        controller = manifest("Controller", accountingRef=..., **spec)
        controller["metadata"]["namespace"] = name
        served.admin.create(path(BY_NAME["Controller"], name), controller)
        maps = f"/api/v1/namespaces/{name}/configmaps"
        for each in ("prologs", "files", "keys", "site-config", "other"):
            served.admin.create(maps, config_map(each))
        served.kubectl("apply", "--validate=strict", "--filename=-", stdin=both)
        try:
            with editor(served, name) as eve:
                wait_until(
                    lambda: told(eve, "PATCH", f"{maps}/prologs", EVIL, content_type=MERGE),
                    EFFECTIVE_S,
                )
            yield name
        finally:
            served.kubectl("delete", "--filename=-", stdin=both)


@pytest.mark.parametrize(
    "name",
    [
        attack(
            "a prolog",
            "with `edit`, and no right over Controllers, be root on all workers by a line in a ConfigMap of `prologScriptRefs`",
            "slurm-operator's policy `files`",
            "prologs",
        ),
        attack(
            "a file of Slurm's",
            "the same by a plugin that a file of `configFileRefs` names",
            "slurm-operator's policy `files`",
            "files",
        ),
        attack(
            "the made configuration",
            "the same by the ConfigMap with slurm.conf that slurm-operator makes, before it is set back",
            "slurm-operator's policy `files`",
            "site-config",
        ),
        attack(
            "a key of one's own",
            "have a key of one's own accepted by slurmctld, by a line in the ConfigMap of `jwksKeyRef`",
            "slurm-operator's policy `files`",
            "keys",
        ),
    ],
)
async def test_who_may_not_change_the_controller_does_not_change_its_files(
    served: Sandbox, guarded: str, name: str
) -> None:
    maps = f"/api/v1/namespaces/{guarded}/configmaps"
    with editor(served, guarded) as eve:
        assert REFUSED in told(eve, "PATCH", f"{maps}/{name}", EVIL, content_type=MERGE)
        whole = {**config_map(name), **EVIL}
        assert REFUSED in told(eve, "PUT", f"{maps}/{name}", whole)
        applied = {"fieldManager": "eve", "force": "true"}
        assert REFUSED in told(
            eve,
            "PATCH",
            f"{maps}/{name}",
            whole,
            content_type="application/apply-patch+yaml",
            params=applied,
        )
        labels = {"metadata": {"labels": {"mine": "yes"}}}
        assert not told(eve, "PATCH", f"{maps}/{name}", labels, content_type=MERGE)
    with editor(served, guarded, also=("Controller",)) as owner:
        assert not told(owner, "PATCH", f"{maps}/{name}", EVIL, content_type=MERGE)


async def test_a_lost_one_is_not_made_anew_by_anybody(served: Sandbox, guarded: str) -> None:
    maps = f"/api/v1/namespaces/{guarded}/configmaps"
    served.admin.delete(f"{maps}/prologs")
    try:
        with editor(served, guarded) as eve:
            assert REFUSED in told(eve, "POST", maps, {**config_map("prologs"), **EVIL})
    finally:
        served.admin.create(maps, config_map("prologs"))


async def test_other_config_maps_and_namespaces_are_free(served: Sandbox, guarded: str) -> None:
    with editor(served, guarded) as eve:
        maps = f"/api/v1/namespaces/{guarded}/configmaps"
        assert not told(eve, "PATCH", f"{maps}/other", EVIL, content_type=MERGE)
        assert not told(eve, "POST", maps, config_map("new"))
    with fresh_namespace(served, labels={LABEL: "true"}) as free, editor(served, free) as eve:
        assert not told(eve, "POST", f"/api/v1/namespaces/{free}/configmaps", config_map("prologs"))
