"""What the doctor asks for is what the chart grants: neither may have a right the other does not know."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from slurmcli.doctor.checks.rights import CLAIM_RIGHTS, RIGHTS, Right
from tests.chart.rendering import Manifest, render

_PROGRAMS = ("extender", "controllers")


def _granted(role: Manifest, program: str) -> Iterator[Right]:
    for rule in role["rules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                for verb in rule["verbs"]:
                    yield Right(
                        program=program,
                        verb=verb,
                        group=group,
                        resource=resource,
                        name=next(iter(rule.get("resourceNames", [""]))),
                        is_own=role["kind"] == "Role",
                    )


@pytest.mark.parametrize("has_profiles", [False, True])
@pytest.mark.parametrize("program", _PROGRAMS)
def test_the_doctor_asks_for_what_the_chart_grants(
    helm: Path, program: str, *, has_profiles: bool
) -> None:
    values = {"extender": {"workloadKinds": []}, "tls": {"mode": "certManager"}}
    profiles = {"controllers": {"device_profiles": {"device.driver == 'd'": "gpu:example"}}}
    rendered = render(helm, {**values, "config": profiles} if has_profiles else values)
    wanted = (*RIGHTS, *(CLAIM_RIGHTS if has_profiles else ()))
    name = f"slurm-bridge-{program}"
    roles = [
        role
        for kind in ("Role", "ClusterRole")
        for role in rendered.of_kind(kind).values()
        if role["metadata"]["name"].startswith(name)
    ]

    granted = {right for role in roles for right in _granted(role, program)}

    assert granted == {right for right in wanted if right.program == program}
