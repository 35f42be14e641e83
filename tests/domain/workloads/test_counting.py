"""Numbers that others have written."""

import pytest

from bridge.domain.workloads import claims, counting, workload
from slurmruntime.values import names
from tests.make import members as build

ENDLESS = "9" * 5000
"""More digits than Python converts."""


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("007", 7), ("999999999", 999_999_999), ("1000000000", None), (ENDLESS, None)],
)
def test_a_long_row_of_digits_is_no_number(text: str, number: int | None) -> None:
    assert number == counting.number(text)


@pytest.mark.parametrize("text", ["", "-1", "+1", " 1", "1.0", "1e3", "²", "٣", "x"])
def test_what_is_not_plain_digits_is_no_number(text: str) -> None:
    assert counting.number(text) is None


def test_an_endless_size_is_a_fault_of_a_few_words() -> None:
    pods = [build.labelled(name, "ring", ENDLESS) for name in ("a", "b")]
    (fault,) = workload.evaluate([(claims.of(pod, []), pod) for pod in pods]).faults
    assert fault.message.startswith("expected a whole number of at most 9 digits, found 9999")
    assert len(fault.text) < 200


def test_many_sizes_are_told_by_example() -> None:
    pods = [build.labelled(f"p{n}", "ring", f"{n}{ENDLESS}") for n in range(1, 50)]
    (fault,) = workload.evaluate([(claims.of(pod, []), pod) for pod in pods]).faults
    assert "expected one size for all pods of the group, found 1099" in fault.message
    assert len(fault.text) < 300


def test_an_endless_index_is_none() -> None:
    pod = build.pod("a", annotations={build.INDEX: ENDLESS, names.GANG_ANNOTATION: "true"})
    assert () == claims.of(pod, [build.job()]).rank
