"""A pod that nobody but our webhook refuses, one that it hands over, and what follows from the answers."""

from dataclasses import replace
from typing import Any

import pytest

from bridge.domain.admission import review as admission
from bridge.domain.admission import selftest
from bridge.domain.admission.review import Draft
from bridge.domain.admission.selftest import Answer, Marks
from bridge.domain.request.build import Defaults
from bridge.domain.request.rules import Policy, Requester
from slurmruntime.values import names
from slurmruntime.values.ids import ClusterId

DEFAULTS = Defaults(cluster=ClusterId(""), required_limits=("cpu", "memory"))
CONTROLLERS = Requester(user="system:serviceaccount:slurm-bridge-system:slurm-bridge-controllers")
HANDED_OVER = Marks(
    scheduler_name=names.SCHEDULER_NAME,
    labels={names.BRIDGED_LABEL: "true"},
    annotations={names.REQUESTER_ANNOTATION: CONTROLLERS.user},
    gates=(names.GATE,),
    finalizers=(names.FINALIZER,),
)
REFUSED = Answer(faults=frozenset({selftest.FAULT}), message="no such field")
CREATED = Answer(pod=HANDED_OVER)


def draft(pod: Any) -> Draft:
    metadata = pod["metadata"]
    annotations = metadata.get("annotations", {})
    return Draft(name=metadata["name"], annotations=annotations, requester=CONTROLLERS)


def test_our_webhook_refuses_the_faulty_one_and_for_nothing_else() -> None:
    pod = draft(selftest.FAULTY_POD)

    for verdict in (
        admission.validate(pod, DEFAULTS, selftest.POLICY),
        admission.admit(pod, DEFAULTS, selftest.POLICY),
    ):
        assert [selftest.FAULT] == [fault.path for fault in verdict.faults]


def test_it_hands_the_sound_one_over_in_one_call_or_in_two() -> None:
    pod = draft(selftest.SOUND_POD)

    for verdict in (
        admission.mutate(pod, selftest.POLICY),
        admission.admit(pod, DEFAULTS, selftest.POLICY),
    ):
        assert {"/metadata/annotations", "/metadata/labels", "/spec/schedulingGates"} <= {
            operation["path"] for operation in verdict.patch
        }
    assert admission.validate(pod, DEFAULTS, selftest.POLICY).is_allowed


def test_that_no_rule_is_for_us_does_not_matter_to_the_faulty_one() -> None:
    """A webhook of an older release judges it by the administrator's rules."""
    verdict = admission.validate(draft(selftest.FAULTY_POD), DEFAULTS, Policy())

    assert selftest.FAULT in {fault.path for fault in verdict.faults}


@pytest.mark.parametrize(
    ("faulty", "complaint"),
    [
        (REFUSED, ""),
        (Answer(faults=frozenset({selftest.FAULT, "metadata.namespace"})), ""),
        (CREATED, "does not call the webhook"),
        (Answer(message="connection refused"), "cannot be created: connection refused"),
        (
            Answer(faults=frozenset({"spec.containers"}), message="connection refused"),
            "cannot be created: connection refused",
        ),
    ],
)
def test_only_our_own_refusal_will_do(faulty: Answer, complaint: str) -> None:
    said = selftest.judge(faulty, CREATED)

    assert complaint in said
    assert bool(complaint) == bool(said)


@pytest.mark.parametrize(
    ("pod", "lacking"),
    [
        (replace(HANDED_OVER, gates=("example.test/other",)), names.GATE),
        (replace(HANDED_OVER, finalizers=()), names.FINALIZER),
        (replace(HANDED_OVER, labels={}), names.BRIDGED_LABEL),
        (replace(HANDED_OVER, annotations={}), names.REQUESTER_ANNOTATION),
        (replace(HANDED_OVER, scheduler_name="default-scheduler"), "spec.schedulerName"),
    ],
)
def test_a_pod_that_is_let_in_must_be_handed_over(pod: Marks, lacking: str) -> None:
    said = selftest.judge(REFUSED, Answer(pod=pod))

    assert "a test pod was not handed over to Slurm" in said
    assert lacking in said


def test_all_that_it_lacks_is_told_and_our_schedulers_name_is_a_setting() -> None:
    bare = replace(HANDED_OVER, labels={}, gates=())
    told = selftest.not_handed_over(bare, "mine")

    for lacking in ("spec.schedulerName mine", names.GATE, names.BRIDGED_LABEL):
        assert lacking in told
    assert "" == selftest.not_handed_over(HANDED_OVER)


def test_a_sound_pod_that_is_refused_says_why() -> None:
    said = selftest.judge(REFUSED, Answer(message="an image policy refuses it"))

    assert "pods of selected namespaces cannot be created: an image policy refuses it" == said
