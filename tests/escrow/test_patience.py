"""How long native jobs wait for containers that their users want to keep running."""

import re
from pathlib import Path

import pytest

from bridge.domain.lifecycle.rules import graces

SCRIPT = Path(__file__).parents[2] / "deploy/escrow/slurm-bridge-escrow"


@pytest.mark.safeguard(
    "escrow",
    "a Slurm user ends own jobs, so that native jobs wait for their containers, or run beside them after the deadline",
    "30 s, which is below the deadline of the script, so no native job is launched beside them; after a preemption, up to `caps.grace_s`, while a native job waits for a minute at most",
)
def test_containers_of_a_job_that_its_user_ended_are_gone_before_the_escrow_gives_up() -> None:
    deadline = re.search(r"^DEADLINE_S=(\d+)", SCRIPT.read_text(), re.MULTILINE)

    assert deadline is not None
    assert graces.KILL_WAIT_S < int(deadline[1])
