"""Our own annotations, written wrongly."""

import pytest

from bridge.domain.request import overrides
from bridge.domain.workloads import claims, own_keys
from slurmruntime.values import names
from tests.make import members as build

OURS = own_keys.PREFIX


def faults(**annotations: str) -> list[str]:
    said = {f"{OURS}{key.replace('_', '-')}": value for key, value in annotations.items()}
    return [
        fault.text.replace(f"metadata.annotations[{OURS}", "[") for fault in own_keys.faults(said)
    ]


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ({"gang": "yes"}, "[gang]: expected true or false, found 'yes'"),
        ({"gang": ""}, "[gang]: expected true or false, found ''"),
        ({"gang": "True"}, "[gang]: expected true or false, found 'True'"),
        ({"on_member_failure": "stop"}, "[on-member-failure]: expected end, found 'stop'"),
        ({"gnag": "true"}, f"[gnag]: no such key; did you mean {OURS}gang?"),
        ({"gangs": "true"}, f"[gangs]: no such key; did you mean {OURS}gang?"),
        (
            {"pod_group_sizes": "4"},
            f"[pod-group-sizes]: no such key; did you mean {OURS}pod-group-size?",
        ),
        (
            {"on_member_failures": "end"},
            f"[on-member-failures]: no such key; did you mean {OURS}on-member-failure?",
        ),
        ({"when_ful": "wait"}, f"[when-ful]: no such key; did you mean {OURS}when-full?"),
    ],
)
def test_a_wrong_value_and_a_slip_of_a_key_are_refused(written: dict[str, str], fault: str) -> None:
    assert [fault] == faults(**written)


def test_what_is_right_or_of_a_later_release_is_no_fault() -> None:
    assert [] == faults(
        gang="true", on_member_failure="end", pod_group_size="4", when_full="wait", colour="blue"
    )
    assert [] == [*own_keys.faults({"example.com/gnag": "true", "g" * 5000: "x"})]
    ours = {value: "x" for value in vars(names).values() if str(value).startswith(OURS)}
    del ours[names.GANG_ANNOTATION], ours[names.ON_FAILURE_ANNOTATION]
    assert [] == [*own_keys.faults(ours), *own_keys.without_effect(ours)]


def test_what_this_release_does_not_know_has_no_effect_and_is_said() -> None:
    (said,) = overrides.effectless({f"{OURS}colour": "blue", f"{OURS}gang": "true"})

    assert said.startswith(f"metadata.annotations[{OURS}colour]: has no effect")


def test_a_pod_waits_while_its_owner_is_not_understood() -> None:
    pod = build.pod("a")
    owner = build.owner("Job", "train", annotations={names.GANG_ANNOTATION: "yes"})

    held = claims.of(pod, [owner])

    assert (False, "AnnotationInvalid") == (held.is_gang, held.held_as)
    assert held.faults[0].text == (
        f"Job train: metadata.annotations[{names.GANG_ANNOTATION}]: expected true or false, found 'yes'"
    )
