"""Names that other people's programs rely on stay: condition reasons, metrics, log events, settings, flags, JSON.

`machine_names.json` is what release 0.1.0 had. Names may be added. One that is renamed goes into `RENAMED`, with the test
that shows that the old name still works, and into `docs/news`.
"""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from bridge.domain.diagnosis import explained, overview, queue, why
from bridge.settings import removed
from slurmruntime.values import findings
from tests.architecture.machine_names import machine_names

RELEASED: Mapping[str, list[str]] = json.loads(
    Path(__file__).with_name("machine_names.json").read_text()
)
RENAMED: Mapping[str, str] = {
    "MaxJobId": "tests/slurm/test_listing.py",  # slurm.conf's; slurm-client reads it
    "Fit": "tests/extender/test_nodes.py",  # a class that an `__all__` listed, never a reason
    "General": "tests/settings/test_settings.py",  # a heading of docs/settings.md, which docs/generate writes
    "policy.rules": "tests/settings/test_settings.py",  # has rows of its parts
    **dict.fromkeys(
        ("priority.min", "priority.max", "nice.min", "nice.max"),
        "tests/process/test_policy_file.py",
    ),  # have one row for both ends
    "match.service_accounts": "tests/settings/test_removed.py",
    **{
        ".".join(name): "tests/settings/test_removed.py"
        for name in (*removed.REMOVED, *removed.RENAMED)
    },
}
"""Released name -> the test that uses it still."""

JSON_FIELDS = {
    queue.QueueEntry: "namespace workload pods running job state user account partition priority gpus age start nodes reason",
    why.Diagnosis: "stage state why next_step details",
    findings.Finding: "check verdict found fix",
    explained.TemplateReport: "where job faults rule note",
    overview.NodeRow: "kube_node slurm_node kubernetes slurm cpus slurm_cpus used_cpus memory_mib slurm_memory_mib"
    " gres reason mismatch",
}
"""What `-o json` prints of each."""


@pytest.mark.parametrize("kind", RELEASED)
def test_a_released_name_is_still_there(kind: str) -> None:
    gone = set(RELEASED[kind]) - set(machine_names()[kind]) - set(RENAMED)
    assert not gone, f"{kind} that 0.1.0 had and this does not: {sorted(gone)}"


@pytest.mark.parametrize("row", JSON_FIELDS, ids=lambda row: row.__name__)
def test_released_json_fields_are_still_printed(row: type) -> None:
    fields = {field.name for field in dataclasses.fields(row)}
    assert set(JSON_FIELDS[row].split()) <= fields
