"""`docs/quickstart.md`, walked: every command, in order, on a sandbox."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from sandbox.client import Sandbox
from tests import pages
from tests.pages import Reader
from tests.servers import wait_until

PAGE = "quickstart.md"
NOT_RUN = {
    "make demo": "starts a sandbox of its own for minutes, and shows the same",
    "make venv": "what runs this is its result",
    ".venv/bin/slurm-bridge sandbox up --state /tmp/sb --accounting --nodes 8 --detach": "the fixture's is up",
    ". /tmp/sb/env": "the fixture has it in its environment",
    ".venv/bin/slurm-bridge sandbox down --state /tmp/sb": "the fixture's goes on",
}
PATIENCE_S = 90


@pytest.fixture
def reader(full_sandbox: Sandbox, tmp_path: Path) -> Iterator[Reader]:
    here = {"/tmp/sb": str(full_sandbox.instance.root)}  # noqa: S108  # the page's
    yield replace(pages.reader(tmp_path, full_sandbox.env), in_place_of=here)
    full_sandbox.kubectl("delete", "namespace", "research", "--wait=false", "--ignore-not-found")


def test_every_command_does_what_the_page_says(reader: Reader, full_sandbox: Sandbox) -> None:
    """What the page shows "a moment later" is waited for."""

    def shows(command: str, words: str) -> None:
        wait_until(lambda: words in reader.types(command), PATIENCE_S, sandbox=full_sandbox)

    shown = {
        "get pod hello": "node-",
        "squeue": "hello",
        "sacct": "COMPLETED",
        "events --for pod/later": "partition is down",
    }
    run: list[str] = []
    for block in pages.blocks(PAGE):
        for command in block.commands():
            typed = command.split("  #")[0].strip()
            if typed in NOT_RUN:
                continue
            expected = next((words for part, words in shown.items() if part in typed), "")
            if typed in run:  # the second look at the Events is after the scancel
                expected = "was cancelled in Slurm"
            shows(typed, expected) if expected else reader.types(typed)
            run.append(typed)

    assert {*shown} == {part for part in shown if any(part in typed for typed in run)}
    wait_until(lambda: "up" in reader.types(run[-1]), PATIENCE_S, sandbox=full_sandbox)
