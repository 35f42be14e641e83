"""Every way in which a container ends is in sacct as docs/lifecycle.md says: real kubelets, many pods at once."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests.realnodes.containers import Containers
from tests.realnodes.endings import ENDINGS, Ending, Pod, runs
from tests.servers import fresh_namespace, wait_until

PAGE = Path(__file__).parents[2] / "docs" / "lifecycle.md"
PATIENCE_S = 240.0
UNFINISHED = ("PENDING", "RUNNING", "COMPLETING", "SUSPENDED")


@pytest.fixture(scope="module")
def recorded(real: Sandbox, request: pytest.FixtureRequest) -> Iterator[Mapping[str, str]]:
    """Play every ending that is asked for at once; what sacct says of each, by name."""
    asked: list[Ending] = [
        item.callspec.params["ending"]  # type: ignore[misc]
        for item in request.session.items
        if isinstance(item, pytest.Function)
        and item.module is request.module
        and "recorded" in item.fixturenames
    ]
    with fresh_namespace(real, labels={names.ENABLED_LABEL: "true"}) as namespace:
        yield _played(Containers(real, namespace), asked)


@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(
            ending, id=ending.name, marks=() if ending.everywhere else pytest.mark.real_all
        )
        for ending in ENDINGS
    ],
)
def test_sacct_says_what_the_page_says(ending: Ending, recorded: Mapping[str, str]) -> None:
    assert recorded[ending.name].startswith(ending.sacct)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_what_is_expected_is_on_the_page(ending: Ending) -> None:
    [row] = (
        line for line in PAGE.read_text().splitlines() if line.startswith(f"| {ending.page} |")
    )
    told = row.split("|")[-2].strip()
    expected, _, _ = told.partition(",")
    assert re.match(re.sub(r"\bn\b", r"\\d+", expected), ending.sacct)


def _played(there: Containers, endings: Sequence[Ending]) -> Mapping[str, str]:
    for ending in endings:
        there.create(
            ending.name,
            *ending.scripts,
            limits=ending.limits,
            notes=ending.notes,
            **ending.spec,
        )
    ids: dict[str, str] = {}
    left = {ending.name: ending for ending in endings if ending.act}

    def all_are_over() -> bool:
        pods = there.sandbox.admin.get(f"/api/v1/namespaces/{there.namespace}/pods")["items"]
        for pod in pods:
            name, labels = pod["metadata"]["name"], pod["metadata"].get("labels", {})
            if names.JOB_ID_LABEL in labels:
                ids[name] = labels[names.JOB_ID_LABEL]
            _interfere(there, pod, ids, left)
        return len(ids) == len(endings) and not any(
            state.startswith(UNFINISHED) for state in _states(there, ids).values()
        )

    wait_until(all_are_over, PATIENCE_S, sandbox=there.sandbox)
    return _states(there, ids)


def _interfere(
    there: Containers, pod: Pod, ids: Mapping[str, str], left: dict[str, Ending]
) -> None:
    name = pod["metadata"]["name"]
    ending = left.get(name)
    if ending is None or ending.act is None or name not in ids:
        return
    if (ending.ready or runs)(pod):
        del left[name]
        ending.act(there, name, ids[name])


def _states(there: Containers, ids: Mapping[str, str]) -> Mapping[str, str]:
    """State and exit code of each job, by the pod's name; what sacct does not know is PENDING."""
    wanted = ("-X", "-n", "-P", "-j", ",".join(ids.values()), "-o", "JobID,State,ExitCode")
    rows = [line.split("|") for line in there.sandbox.run("sacct", *wanted).splitlines()]
    told = {job: f"{state.split()[0]} {code}" for job, state, code in rows}
    return {name: told.get(job, "PENDING") for name, job in ids.items()}
