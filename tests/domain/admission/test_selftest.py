"""The pod nobody but our webhook would refuse, and what follows from the answer."""

import pytest

from bridge.domain.admission import review as admission
from bridge.domain.admission import selftest
from bridge.domain.admission.review import Draft
from bridge.domain.ids import ClusterId
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy, Rule

EVERYBODY = Policy(rules=(Rule(name="everybody", source="a rule", user="u"),))


def test_our_webhook_refuses_it_and_for_nothing_else() -> None:
    metadata = selftest.POD["metadata"]
    assert isinstance(metadata, dict)
    draft = Draft(name=metadata["name"], annotations=metadata["annotations"])

    assert admission.mutate(draft, EVERYBODY).patch
    verdict = admission.validate(draft, Defaults(cluster=ClusterId("")), EVERYBODY)
    assert [selftest.FAULT] == [fault.path for fault in verdict.faults]


def test_that_no_rule_is_for_us_does_not_matter() -> None:
    metadata = selftest.POD["metadata"]
    assert isinstance(metadata, dict)
    draft = Draft(name=metadata["name"], annotations=metadata["annotations"])

    verdict = admission.validate(draft, Defaults(cluster=ClusterId("")), Policy())

    assert selftest.FAULT in {fault.path for fault in verdict.faults}


@pytest.mark.parametrize(
    ("refused_fields", "complaint"),
    [
        (frozenset({selftest.FAULT}), ""),
        (frozenset({selftest.FAULT, "metadata.namespace"}), ""),
        (None, "does not call the webhook"),
        (frozenset(), "cannot be created: connection refused"),
        (frozenset({"spec.containers"}), "cannot be created: connection refused"),
    ],
)
def test_only_our_own_refusal_will_do(
    refused_fields: frozenset[str] | None, complaint: str
) -> None:
    said = selftest.judge(refused_fields, "connection refused")

    assert complaint in said
    assert bool(complaint) == bool(said)
