"""Caps at CREATE, as the webhook reads a review."""

import pytest

from bridge.domain.admission import review as admission
from bridge.domain.caps import DEFAULT, TABLE, Caps
from bridge.domain.ids import ClusterId
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy
from tests.make import oversized
from tests.webhook.recordings import with_pod
from webhook import wire


def faults_of(members: oversized.Members, caps: Caps = DEFAULT) -> list[str]:
    pod = wire.draft(wire.read(with_pod(**members)))
    verdict = admission.validate(pod, Defaults(cluster=ClusterId("c"), caps=caps), Policy())
    return [fault.text for fault in verdict.faults if "(setting caps." in fault.text]


@pytest.mark.parametrize("name", TABLE)
def test_a_pod_may_have_as_much_as_the_cap_and_no_more(name: str) -> None:
    most = getattr(DEFAULT, name)
    envelope = 10_000 if name == "object_bytes" else 0

    assert [] == faults_of(oversized.having(name, most - envelope))
    (fault,) = [
        fault for fault in faults_of(oversized.having(name, most + 1)) if f"caps.{name})" in fault
    ]
    assert fault.startswith(f"{TABLE[name].path}: expected at most {most} {TABLE[name].unit}")


def test_everything_that_is_too_much_is_told_at_once() -> None:
    found = faults_of(oversized.all_too_much())

    assert list(TABLE) == [fault.rpartition("caps.")[2].rstrip(")") for fault in found]


def test_an_administrator_may_allow_more() -> None:
    pod = oversized.having("tolerations", 80)

    assert 1 == len(faults_of(pod))
    assert [] == faults_of(pod, Caps(tolerations=80))
