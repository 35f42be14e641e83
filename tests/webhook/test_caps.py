"""Caps at CREATE, as the webhook reads a review."""

import json
from typing import Any

import pytest

from bridge.domain.admission import review as admission
from bridge.domain.caps import DEFAULT, TABLE, Caps
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy, Rule
from bridge.kube import decode
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId
from tests.make import oversized
from tests.make.patches import patched
from tests.webhook.recordings import with_pod
from webhook import wire


def faults_of(members: oversized.Members, caps: Caps = DEFAULT) -> list[str]:
    pod = wire.draft(wire.read(with_pod(**members)))
    verdict = admission.validate(pod, Defaults(cluster=ClusterId("c"), caps=caps), Policy())
    return [fault.text for fault in verdict.faults if oversized.caps_named(fault.text)]


@pytest.mark.parametrize("name", TABLE)
def test_a_pod_may_have_as_much_as_the_cap_and_no_more(name: str) -> None:
    most = getattr(DEFAULT, name)
    envelope = 10_000 if name == "object_bytes" else 0

    assert [] == faults_of(oversized.having(name, most - envelope))
    found = faults_of(oversized.having(name, most + 1))
    (fault,) = [fault for fault in found if [name] == oversized.caps_named(fault)]
    assert fault.startswith(f"{TABLE[name].path}: expected at most {most} {TABLE[name].unit}")


def test_everything_that_is_too_much_is_told_at_once() -> None:
    found = faults_of(oversized.all_too_much())

    assert list(TABLE) == oversized.caps_named(" ".join(found))


@pytest.mark.attack(
    "create pods with 100 000 tolerations or terms of affinity, so that the webhook reviews nothing else",
    "lists that are longer than honest ones are not decoded, and no pod of more than twice the cap `object_bytes`",
)
@pytest.mark.parametrize("name", ["tolerations", "affinity_terms"])
def test_a_list_that_is_too_long_to_be_read_is_refused(name: str) -> None:
    (fault,) = [fault for fault in faults_of(oversized.having(name, 5000)) if f"{name})" in fault]

    assert fault.startswith(f"{TABLE[name].path}: expected at most {getattr(DEFAULT, name)}")
    assert f"found more than {TABLE[name].largest} " in fault


def test_a_pod_that_is_far_too_long_is_refused_unread() -> None:
    review = wire.read(with_pod(**oversized.having("annotation_bytes", 600_000)))
    wire.draft(review)

    with pytest.raises(wire.MalformedObjectError, match="expected at most 500000 bytes of JSON"):
        wire.draft(review, most_bytes=500_000)


def test_an_administrator_may_allow_more() -> None:
    pod = oversized.having("grace_s", 7200)

    assert 1 == len(faults_of(pod))
    assert [] == faults_of(pod, Caps(grace_s=7200))


EVERYBODY = Policy(rules=(Rule(name="everybody", source="a rule", user="u"),))


@pytest.mark.parametrize("name", TABLE)
@pytest.mark.parametrize("more", [0, 1])
def test_a_pod_is_judged_alike_before_and_after_it_is_handed_over(name: str, more: int) -> None:
    """In one call before, in two after, and by the extender again: what we write ourselves does not count."""
    most = getattr(DEFAULT, name)
    amount = most - 10_000 if name == "object_bytes" and not more else most + more
    before = with_pod(**oversized.having(name, amount))
    defaults = Defaults(cluster=ClusterId("c"))
    handed_over = admission.mutate(wire.draft(wire.read(before)), EVERYBODY)
    after = json.loads(before)
    after["request"]["object"] = patched(after["request"]["object"], handed_over.patch)

    in_one = admission.admit(wire.draft(wire.read(before)), defaults, EVERYBODY)
    in_two = admission.validate(
        wire.draft(wire.read(json.dumps(after).encode())), defaults, EVERYBODY
    )
    stored = decode.pod(json.dumps(stored_as(after["request"]["object"])).encode())

    assert [fault.path for fault in in_one.faults] == [fault.path for fault in in_two.faults]
    assert (more == 0) == in_one.is_allowed
    if name not in ("grace_s", "gang_size", "object_bytes"):  # known at CREATE only, or elsewhere
        measured = getattr(stored.sizes, name)
        assert measured == amount


def test_a_toleration_of_ours_counts_once_at_most() -> None:
    ours = {"key": names.MANAGED_NODE_TAINT, "operator": "Exists"}
    many = {
        "spec": {"tolerations": [{**ours, "value": f"{n}"} for n in range(DEFAULT.tolerations + 2)]}
    }

    assert 1 == len(faults_of(many))


def test_what_the_api_server_notes_about_fields_does_not_count() -> None:
    fields = [{"manager": "x" * DEFAULT.object_bytes, "operation": "Update"}]

    assert [] == faults_of({"metadata": {"managedFields": fields}})


def stored_as(pod: dict[str, Any]) -> dict[str, Any]:
    identity = {
        "name": "p",
        "uid": "u",
        "resourceVersion": "1",
        "creationTimestamp": "2026-11-23T18:00:00Z",
    }
    return {**pod, "metadata": {**pod["metadata"], **identity}}
