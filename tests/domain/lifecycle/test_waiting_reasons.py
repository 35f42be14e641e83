"""Slurm's reasons for letting a job wait, in plain words."""

from pathlib import Path

import pytest

from bridge.domain.lifecycle import waiting_reasons
from docs.generate import reasons

PAGE = Path(__file__).parents[3] / "docs/reasons.md"


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Priority", "jobs with a higher priority go first"),
        ("Resources", "the resources it needs are not free"),
        ("JobHeldAdmin", "an administrator holds it"),
        ("QOSGrpCpuLimit", "all jobs under its QOS together have reached its CPU limit"),
        ("QOSMaxJobsPerUserLimit", "its user has reached the job limit of its QOS for one user"),
        ("QOSMaxGRESPerUser", "its user has reached the GPU (GRES) limit of its QOS for one user"),
        ("QOSMaxCpuPerJobLimit", "it asks for more than the CPU limit of its QOS for one job"),
        ("QOSMinCpuNotSatisfied", "it asks for less than the CPU minimum of its QOS"),
        ("AssocGrpGRES", "its account as a whole has reached its GPU (GRES) limit"),
        (
            "AssocGrpCPURunMinutesLimit",
            "its account as a whole has reached its CPU minutes limit",
        ),
        ("AssocMaxJobsLimit", "its user has reached the job limit of its account for one user"),
        (
            "AssocMaxWallDurationPerJobLimit",
            "it asks for more than the time limit of its account for one job",
        ),
        (
            "MaxGRESPerAccount",
            "its account has reached the GPU (GRES) limit of its QOS for one account",
        ),
        (
            "AssociationResourceLimit",
            "its user has reached the resource limit of its account for one user",
        ),
    ],
)
def test_explains_reasons_by_their_name_or_their_parts(reason: str, words: str) -> None:
    found = waiting_reasons.explain(reason)

    assert found is not None
    assert found.words == words


@pytest.mark.parametrize("reason", ["SomethingNew", "Max", "Limit", "AssocGrp", "QOSMaxWarpPerJob"])
def test_does_not_pretend_to_know(reason: str) -> None:
    assert waiting_reasons.explain(reason) is None


def test_the_page_is_what_the_table_says() -> None:
    assert PAGE.read_text() == reasons.render(), "make docs"
