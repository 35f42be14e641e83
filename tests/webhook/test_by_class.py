"""Requests for devices by their class, as the webhook reads and changes them."""

import json
from typing import Any

from bridge.domain.admission import review as admission
from bridge.domain.model.claims.by_class import Ways
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy, Rule
from slurmruntime.values.ids import ClusterId
from tests.make.patches import patched
from tests.webhook.recordings import with_pod
from webhook import wire

GPU = "deviceclass.resource.kubernetes.io/gpu.example.com"
EVERYBODY = Policy(rules=(Rule(name="everybody", source="a rule", user="u"),))
DEFAULTS = Defaults(cluster=ClusterId("c"), devices=Ways(takes_claims=True))


def asking(count: str, **more: Any) -> dict[str, Any]:
    """A container as the API server completes it: its limit is a request, too."""
    amounts = {GPU: count, "memory": "1Gi"}
    return {"name": "c", "resources": {"limits": amounts, "requests": dict(amounts)}, **more}


def test_what_comes_out_passes_whoever_looks_at_it_next() -> None:
    sidecar = asking("1", restartPolicy="Always")
    spec = {"containers": [asking("2")], "initContainers": [sidecar]}
    body = with_pod(spec=spec)

    first = admission.admit(wire.draft(wire.read(body)), DEFAULTS, EVERYBODY)

    assert first.is_allowed, first.faults
    after = json.loads(body)
    after["request"]["object"] = patched(after["request"]["object"], first.patch)
    again = wire.draft(wire.read(json.dumps(after).encode()))
    assert ("slurm-bridge-0", "slurm-bridge-1") == again.resource_claims
    assert admission.validate(again, DEFAULTS, EVERYBODY).is_allowed
    assert not admission.mutate(again, EVERYBODY, devices=DEFAULTS.devices).patch


def test_init_containers_are_told_from_sidecars() -> None:
    body = with_pod(spec={"containers": [asking("2")], "initContainers": [asking("1")]})

    faults = admission.admit(wire.draft(wire.read(body)), DEFAULTS, EVERYBODY).faults

    assert [f"spec.initContainers[0].resources[{GPU}]"] == [fault.path for fault in faults]
