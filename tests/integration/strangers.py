"""Jobs of Slurm's other users, which have whole nodes for themselves."""

import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from tests.servers import wait_until

T = TypeVar("T")

_CANCELLED_WITHIN_S = 60.0


@contextmanager
def on(
    sandbox: Sandbox, nodes: Sequence[str], *, options: Sequence[str], deadline_s: float
) -> Iterator[dict[str, int]]:
    """Yield the job on each of these nodes; those that are left go in the end."""
    name = f"stranger-{uuid.uuid4().hex[:8]}"
    whole = ("sbatch", "--external", "--exclusive", f"--job-name={name}", *options)

    def holders() -> dict[str, int]:
        listed = sandbox.run("squeue", "--noheader", f"--name={name}", "-o", "%n %T %i")
        jobs = [line.split() for line in listed.splitlines()]
        submitted = {node for node, _, _ in jobs}
        for node in nodes:
            if node not in submitted:
                sandbox.run(*whole, f"--nodelist={node}")
        running = {node: int(job) for node, state, job in jobs if state == "RUNNING"}
        return running if running.keys() == {*nodes} else {}

    try:
        yield wait_until(_unless_slow(holders, {}), deadline_s, sandbox=sandbox)
    finally:
        # By name: a job whose answer was lost would have its node for the rest of the run.
        cancelled = partial(sandbox.run, "scancel", "--quiet", f"--name={name}")
        wait_until(_unless_slow(lambda: cancelled() == "", False), _CANCELLED_WITHIN_S)


def _unless_slow(ask: Callable[[], T], otherwise: T) -> Callable[[], T]:
    """Ask Slurm; `otherwise` if slurmctld lets a command time out (5 s here), as a busy machine does."""

    def answer() -> T:
        try:
            return ask()
        except SandboxError as error:
            if "timed out" not in str(error):
                raise
            return otherwise

    return answer
