"""Requests for devices by their class become claims at CREATE."""

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.admission import by_class as admission
from bridge.domain.admission import review
from bridge.domain.admission.by_class import Asker
from bridge.domain.admission.review import Draft
from bridge.domain.model.claims import by_class
from bridge.domain.model.claims.asking import MOST_CLAIMS
from bridge.domain.model.claims.by_class import Ways
from bridge.domain.model.demand import Resources
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy, Requester, Rule
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests.make import patches
from tests.make.placing import demands

PREFIX = "deviceclass.resource.kubernetes.io/"
GPU, NIC = f"{PREFIX}gpu.example.com", f"{PREFIX}nic"
POLICY = Policy(rules=(Rule(name="all", source="policy rule all", user="someone"),))
WAYS = Ways(takes_claims=True, resources={"example.com/nic": "nic"})
TAKES_CLAIMS = Defaults(cluster=ClusterId("c-1"), devices=WAYS)


Asks = tuple[Resources, Sequence[str]]
"""A container's: its resources, and the claims that it uses."""


def asks(*, has_claims: bool = False, **amounts: str) -> Asks:
    """A container's resources as the API server completes them: a limit is a request, too."""
    by_name = {"gpu": GPU, "nic": NIC}
    named = {by_name.get(name, name): amount for name, amount in amounts.items()}
    return Resources(named, dict(named)), ("theirs",) * has_claims


def draft(*containers: Asks) -> Draft:
    every = {name: amount for each, _ in containers for name, amount in each.limits.items()}
    return Draft(
        name="one",
        namespace="physics",
        requester=Requester(user="alice"),
        demand=demands(**every),
        class_askers=admission.askers(containers=containers),
    )


def pod_of(*containers: Asks, claims: Sequence[str] = ()) -> dict[str, Any]:
    """The same pod as JSON."""
    spec: dict[str, Any] = {
        "containers": [
            {
                "resources": {
                    "requests": dict(each.requests),
                    "limits": dict(each.limits),
                    **({"claims": [{"name": name} for name in used]} if used else {}),
                }
            }
            for each, used in containers
        ]
    }
    if claims:
        spec["resourceClaims"] = [{"name": name} for name in claims]
    return {"spec": spec}


def patched(*containers: Asks, claims: Sequence[str] = ()) -> dict[str, Any]:
    operations = tuple(admission.patch(admission.askers(containers=containers), WAYS, claims))
    spec: dict[str, Any] = patches.patched(pod_of(*containers, claims=claims), operations)["spec"]
    return spec


def applied(spec: dict[str, Any], *containers: Asks) -> dict[str, Any]:
    """What is stored if somebody applies requests to containers that may have claims for them."""
    given = copy.deepcopy(spec)
    found: list[Asks] = []
    for (asked, _), container in zip(containers, given["containers"], strict=True):
        resources = container["resources"]
        resources["requests"] |= asked.requests
        resources["limits"] |= asked.limits
        used = [claim["name"] for claim in resources.get("claims", ())]
        found.append((Resources(resources["requests"], resources["limits"]), used))
    templates = {
        resource_claim["name"]: resource_claim.get("resourceClaimTemplateName", "")
        for resource_claim in given.get("resourceClaims", ())
    }
    operations = tuple(admission.drop_met(admission.askers(containers=found), WAYS, templates))
    stored: dict[str, Any] = patches.patched({"spec": given}, operations)["spec"]
    return stored


def test_only_what_is_claimed_already_is_taken_off() -> None:
    """The API server refuses the rest: nobody gets other devices than the manifest says without a word."""
    spec = patched(asks(gpu="2"), asks(gpu="1"))

    assert spec == applied(spec, asks(gpu="2"), asks(gpu="1"))
    for others in (
        (asks(gpu="1"), asks(gpu="1")),
        (asks(gpu="2"), asks(nic="1")),
        (asks(gpu="2", nic="1"), asks(gpu="1")),
        (asks(gpu="1"), asks(gpu="2")),
    ):
        assert spec != applied(spec, *others)


def test_each_containers_request_becomes_a_claim_of_its_own() -> None:
    spec = patched(asks(gpu="2", memory="1Gi"), asks(memory="1Gi"), asks(gpu="1", nic="1"))

    assert spec["resourceClaims"] == [
        {
            "name": "slurm-bridge-0",
            "resourceClaimTemplateName": "slurm-bridge-2-of-gpu.example.com",
        },
        {
            "name": "slurm-bridge-1",
            "resourceClaimTemplateName": "slurm-bridge-1-of-gpu.example.com",
        },
        {"name": "slurm-bridge-2", "resourceClaimTemplateName": "slurm-bridge-1-of-nic"},
    ]
    memory = {"memory": "1Gi"}
    assert [container["resources"] for container in spec["containers"]] == [
        {"requests": memory, "limits": memory, "claims": [{"name": "slurm-bridge-0"}]},
        {"requests": memory, "limits": memory},
        {
            "requests": {},
            "limits": {},
            "claims": [{"name": "slurm-bridge-1"}, {"name": "slurm-bridge-2"}],
        },
    ]


def test_claims_that_are_there_stay() -> None:
    theirs = ["theirs", "slurm-bridge-0"]
    spec = patched(asks(gpu="1", has_claims=True), asks(gpu="1"), claims=theirs)

    ours = ["slurm-bridge-1", "slurm-bridge-2"]
    assert [*theirs, *ours] == [resource_claim["name"] for resource_claim in spec["resourceClaims"]]
    first, second = spec["containers"]
    assert [{"name": "theirs"}, {"name": "slurm-bridge-1"}] == first["resources"]["claims"]
    assert [{"name": "slurm-bridge-2"}] == second["resources"]["claims"]


def test_a_resource_name_that_stands_for_a_class_is_one_way_to_ask() -> None:
    amounts = {"memory": "1Gi", GPU: "1", "example.com/nic": "2", "example.com/foo": "1"}
    spec = patched((Resources(amounts, dict(amounts)), ()))

    templates = [
        resource_claim["resourceClaimTemplateName"] for resource_claim in spec["resourceClaims"]
    ]
    assert ["slurm-bridge-1-of-gpu.example.com", "slurm-bridge-2-of-nic"] == templates
    (container,) = spec["containers"]
    assert {"memory": "1Gi", "example.com/foo": "1"} == container["resources"]["limits"]


containers = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from([GPU, NIC, "cpu"]), st.integers(0, 9).map(str)),
        st.booleans(),
    ),
    min_size=1,
    max_size=4,
)
theirs = st.lists(st.sampled_from([f"slurm-bridge-{n}" for n in range(4)]), unique=True)


@given(containers, theirs)
def test_as_many_devices_are_claimed_as_were_asked_for(
    found: list[tuple[dict[str, str], bool]], claims: list[str]
) -> None:
    asked = [
        (Resources(amounts, dict(amounts)), ("theirs",) * has_claims)
        for amounts, has_claims in found
    ]
    spec = patched(*asked, claims=claims)
    assert spec == applied(spec, *asked)

    entries = {
        resource_claim["name"]: resource_claim for resource_claim in spec.get("resourceClaims", ())
    }
    assert len(entries) == len(spec.get("resourceClaims", ()))
    for (amounts, _), container in zip(found, spec["containers"], strict=True):
        claimed = {}
        for claim in container["resources"].get("claims", ()):
            if claim["name"] != "theirs":
                told = by_class.spec(entries[claim["name"]]["resourceClaimTemplateName"])
                assert told is not None
                (request,) = told.requests
                claimed[PREFIX + request.device_class] = request.count
        wanted = {name: int(n) for name, n in amounts.items() if name != "cpu" and n != "0"}
        assert wanted == claimed
        assert not wanted.keys() & container["resources"]["limits"].keys()
        assert not wanted.keys() & container["resources"]["requests"].keys()


def test_a_pod_that_asks_by_a_class_is_handed_over_with_claims() -> None:
    pod = draft(asks(gpu="2"))
    verdict = review.admit(pod, TAKES_CLAIMS, POLICY, extender_binds=True)

    assert verdict.is_allowed, verdict.faults
    handed_over = review.mutate(pod, POLICY, devices=WAYS, extender_binds=True)
    assert verdict.patch == handed_over.patch
    written = {each["path"]: each.get("value") for each in verdict.patch}
    assert "/spec/resourceClaims" in written
    assert names.binder(names.SCHEDULER_NAME) == written["/spec/schedulerName"]


def test_a_second_call_finds_nothing_to_do() -> None:
    after = replace(draft(asks(memory="1Gi")), resource_claims=("slurm-bridge-0",))

    paths = [each["path"] for each in review.mutate(after, POLICY, devices=WAYS).patch]
    assert not [path for path in paths if "laim" in str(path)]


@pytest.mark.parametrize(
    ("askers", "path", "why"),
    [
        (
            admission.askers(initContainers=[asks(gpu="1")]),
            f"spec.initContainers[0].resources[{GPU}]",
            "the containers that start after an init container would share its devices",
        ),
        (
            admission.askers(containers=[asks(), asks(gpu="33")]),
            f"spec.containers[1].resources[{GPU}]",
            "expected at most 32 devices, found 33",
        ),
        (
            admission.askers(containers=[(Resources({f"{PREFIX}GPU": "1"}), ())]),
            f"spec.containers[0].resources[{PREFIX}GPU]",
            "expected a lowercase DNS subdomain",
        ),
        (
            admission.askers(containers=[asks(gpu="500m")]),
            f"spec.containers[0].resources[{GPU}]",
            "expected a whole number of devices, found '500m'",
        ),
        (
            admission.askers(containers=[(Resources({GPU: "1"}, {GPU: "2"}), ())]),
            f"spec.containers[0].resources[{GPU}]",
            "expected a limit that equals the request '1', found '2'",
        ),
        (
            admission.askers(containers=[(Resources({GPU: "1"}), ())]),
            f"spec.containers[0].resources[{GPU}]",
            "expected a limit that equals the request '1', found none",
        ),
        (
            admission.askers(containers=[(Resources({}, {"example.com/nic": "1.5"}), ())]),
            "spec.containers[0].resources[example.com/nic]",
            "expected a whole number of devices, found '1.5'",
        ),
    ],
)
def test_what_cannot_become_a_claim_is_refused_and_left_as_it_is(
    askers: tuple[Asker, ...], path: str, why: str
) -> None:
    pod = replace(draft(asks()), class_askers=askers)

    for verdict in (
        review.admit(pod, TAKES_CLAIMS, POLICY),
        review.validate(pod, TAKES_CLAIMS, POLICY),
    ):
        told = [fault for fault in verdict.faults if fault.path == path]
        assert [True] == [why in fault.message for fault in told]
    patch = review.mutate(pod, POLICY, devices=WAYS).patch
    assert "/spec/resourceClaims" not in [each["path"] for each in patch]


def test_a_sidecar_may_ask_by_a_class() -> None:
    resources, _ = asks(gpu="1")
    found = admission.askers(initContainers=[(resources._replace(sidecar=True), ())])

    assert not list(admission.faults(found, WAYS))
    removed, *_ = admission.patch(found, WAYS, ())
    assert str(removed["path"]).startswith("/spec/initContainers/0/resources/limits/")


def test_two_ways_of_writing_one_number_are_equal() -> None:
    found = admission.askers(containers=[(Resources({GPU: "2"}, {GPU: "2000m"}), ())])

    assert not list(admission.faults(found, WAYS))


@pytest.mark.parametrize("written", [MOST_CLAIMS - 1, MOST_CLAIMS])
def test_more_claims_than_slurm_is_asked_for_are_refused_at_the_door(written: int) -> None:
    """A request by a class is one of them."""
    pod = replace(
        draft(asks(gpu="1")), resource_claims=tuple(f"theirs-{n}" for n in range(written))
    )

    faults = review.admit(pod, TAKES_CLAIMS, POLICY).faults
    told = [fault for fault in faults if fault.path == "spec.resourceClaims"]
    assert (written == MOST_CLAIMS) == bool(told)
    assert all("expected at most 32 claims" in each.message for each in told)


def test_what_the_webhook_was_not_asked_to_change_is_refused() -> None:
    """The API server's own policy hands pods over, and makes no claims."""
    (fault,) = [
        fault
        for fault in review.validate(draft(asks(gpu="1")), TAKES_CLAIMS, POLICY).faults
        if "resources" in fault.path
    ]
    assert "chart value admission.mutate" in fault.message


@pytest.mark.parametrize(
    "name",
    [
        "slurm-bridge-0-of-gpu",
        "slurm-bridge-100-of-gpu",
        "slurm-bridge-2-of-",
        "slurm-bridge-2-of-GPU",
        "devices-2",
        "x-slurm-bridge-2-of-gpu",
    ],
)
def test_other_templates_are_their_authors(name: str) -> None:
    assert by_class.spec(name) is None
