"""Resource claims and slices as the API server writes them, and what we write."""

import json
from datetime import UTC, datetime

import pytest

from bridge.domain.model.claims.giving import Gift, Result
from bridge.domain.model.claims.values import ClaimSpec, DeviceClass, DeviceId
from bridge.kube.claims import bodies, resource_claims, slices
from slurmruntime.kube import errors
from slurmruntime.values.ids import KubeNode

META = {
    "name": "mine",
    "namespace": "ns",
    "uid": "u1",
    "resourceVersion": "7",
    "creationTimestamp": "2026-01-01T00:00:00Z",
}
MOMENT = datetime(2026, 11, 26, 12, tzinfo=UTC)
OPAQUE = {"opaque": {"driver": "d", "parameters": {"mode": "fast"}}}


def claim(exactly: dict[str, object] | None = None, **status: object) -> bytes:
    request: dict[str, object] = {"name": "r", "exactly": {"deviceClassName": "c"}}
    if exactly is not None:
        request["exactly"] = {"deviceClassName": "c", **exactly}
    devices = {"requests": [request], "config": [OPAQUE]}
    return json.dumps({"metadata": META, "spec": {"devices": devices}, "status": status}).encode()


@pytest.mark.parametrize(
    ("exactly", "unusable"),
    [
        ({"count": 2, "allocationMode": "ExactCount"}, ()),
        ({"adminAccess": False}, ()),
        ({"adminAccess": True}, ("exactly.adminAccess",)),
        ({"allocationMode": "All"}, ("exactly.allocationMode",)),
        ({"selectors": [{"cel": {"expression": "true"}}]}, ("exactly.selectors",)),
        ({"capacity": {"requests": {"memory": "1Gi"}}}, ("exactly.capacity",)),
        ({"tolerations": [{"operator": "Exists"}]}, ("exactly.tolerations",)),
    ],
)
def test_what_a_request_sets_and_slurm_cannot_honour_is_seen(
    exactly: dict[str, object], unusable: tuple[str, ...]
) -> None:
    [request] = resource_claims.claim(claim(exactly)).spec.requests

    assert request.unusable == unusable


def test_what_we_write_is_what_we_read() -> None:
    mine = resource_claims.claim(claim())
    gift = Gift(claim=mine, results=(Result(request="r", device=DeviceId("d", "n1", "gpu-1")),))
    classes = {"c": DeviceClass(name="c", config=(OPAQUE,))}

    written = bodies.allocation(gift, classes, KubeNode("n1"), MOMENT)
    found = resource_claims.claim(
        claim(allocation=written, reservedFor=[{"resource": "pods", "name": "p", "uid": "p1"}])
    )

    assert (found.devices, found.node, found.reserved_for) == (gift.devices, "n1", ("p1",))
    assert written["devices"] == {
        "results": [{"request": "r", "driver": "d", "pool": "n1", "device": "gpu-1"}],
        "config": [
            {"source": "FromClass", "requests": ["r"], **OPAQUE},
            {"source": "FromClaim", **OPAQUE},
        ],
    }
    assert written["allocationTimestamp"] == "2026-11-26T12:00:00.000000Z"


def test_what_a_claim_asks_for_is_kept_while_it_waits() -> None:
    waiting = json.loads(claim())
    del waiting["spec"]["devices"]["config"]

    kept = resource_claims.CLAIMS.read(json.dumps(waiting).encode())

    assert kept.has_spec
    assert ["c"] == [request.device_class for request in kept.spec.requests]


def many(what: str) -> bytes:
    """A claim that waits, and has so much of something that it is not kept."""
    found = json.loads(claim())
    devices = found["spec"]["devices"]
    if what != "parameters":
        del devices["config"]
    if what == "requests":
        devices["requests"] *= 5
    if what == "finalizers":
        found["metadata"]["finalizers"] = [f"example.com/{n}" for n in range(5)]
    if what == "oddities":
        devices["requests"] = "many"
    return json.dumps(found).encode()


@pytest.mark.parametrize("what", ["parameters", "requests", "finalizers", "oddities"])
def test_of_a_claim_that_asks_for_much_only_what_it_has_is_kept(what: str) -> None:
    kept = resource_claims.CLAIMS.read(many(what))

    assert not kept.has_spec
    assert (ClaimSpec(), ()) == (kept.spec, kept.finalizers)
    assert resource_claims.CLAIMS.read(many("nothing")).has_spec


def test_what_a_claim_asks_for_is_not_kept_of_everyone() -> None:
    results = [{"request": "r", "driver": "d", "pool": "n1", "device": "gpu-1"}]
    written = claim(allocation={"devices": {"results": results}}, reservedFor=[{"uid": "p1"}])
    whole = resource_claims.claim(written)
    kept = resource_claims.CLAIMS.read(written)

    assert kept == whole.without_spec
    assert (kept.spec, kept.devices, kept.reserved_for) == (ClaimSpec(), whole.devices, ("p1",))


@pytest.mark.parametrize(
    "config", [[OPAQUE] * 33, [{"opaque": {"parameters": "x" * 2**14}}], [{"opaque": {"a": 1}}, 7]]
)
def test_parameters_that_kubernetes_would_not_take_are_not_read(config: list[object]) -> None:
    spec = {"devices": {"requests": [], "config": config}}

    with pytest.raises(errors.Malformed, match=r"spec\.devices\.config"):
        resource_claims.claim(json.dumps({"metadata": META, "spec": spec}).encode())


def test_who_only_looks_after_a_device_does_not_have_it() -> None:
    results = [
        {"request": "r", "driver": "d", "pool": "n1", "device": "gpu-1", "adminAccess": True},
        {"request": "r", "driver": "d", "pool": "n1", "device": "gpu-2"},
    ]
    found = resource_claims.claim(claim(allocation={"devices": {"results": results}}))

    assert (DeviceId("d", "n1", "gpu-2"),) == found.devices


def test_devices_that_share_with_others_or_are_tainted_are_left_out() -> None:
    devices = [
        {"name": "whole"},
        {"name": "part", "consumesCounters": [{"counterSet": "gpu", "counters": {}}]},
        {"name": "sick", "taints": [{"key": "sick", "effect": "NoSchedule"}]},
    ]
    spec = {"driver": "d", "pool": {"name": "n1"}, "nodeName": "n1", "devices": devices}
    found = slices.resource_slice(json.dumps({"metadata": META, "spec": spec}).encode())

    assert ["whole"] == [device.id.device for device in found.devices]


def test_attributes_without_a_domain_are_the_driver_s() -> None:
    attributes = {"model": {"string": "a100"}, "other.org/index": {"int": 3}}
    spec = {
        "driver": "d",
        "nodeName": "n1",
        "pool": {"name": "n1", "generation": 2, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0", "attributes": attributes}],
    }
    found = slices.resource_slice(json.dumps({"metadata": META, "spec": spec}).encode())

    assert found.devices[0].attributes == {"d/model": "a100", "other.org/index": 3}
    assert (found.node, found.generation) == ("n1", 2)
