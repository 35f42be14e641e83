"""Each write of the loop over NodeSets fails in turn, and its leader dies at each."""

from typing import Any

import pytest

from tests.make.trouble import Fault, Trouble
from tests.slurmoperator.nodesets.peers import SETTLED_S, Operator, job, names_of, node_set
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("fault", Fault)
@pytest.mark.parametrize("at", range(1, 21))
def test_whatever_write_fails_it_comes_out_the_same_and_no_job_is_lost(
    fault: Fault, at: int
) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock, Trouble(fault, at=at))
        operator.api.put(node_set(replicas=3))
        await operator.lead(for_s=SETTLED_S)
        operator.slurm.jobs[1] = job(1, "gpu-0")
        operator.api.change("NodeSet", "gpu", spec={"replicas": 1})
        await operator.lead(for_s=2 * SETTLED_S)

        assert ["gpu-0"] == names_of(operator.api.pods)
        assert "" == operator.slurm.nodes.by_name["gpu-0"].reason
        assert "RUNNING" == operator.slurm.jobs[1].state
        assert "True" == operator.api.condition("gpu", "Ready")["status"]
        assert 1 == operator.api.status("gpu")["replicas"]

    run(main)


class _Death(BaseException):
    """The process is no more."""


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("at", range(1, 21))
def test_a_leader_may_die_at_any_write(at: int, *, is_done: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        operator = Operator(clock)
        operator.api.put(node_set(replicas=3))
        write, count = operator.trouble.write, 0

        def dying(*args: Any, **kwargs: Any) -> Any:
            nonlocal count
            count += 1
            if count != at:
                return write(*args, **kwargs)
            if is_done:
                write(*args, **kwargs)
            raise _Death

        operator.trouble.write = dying  # type: ignore[method-assign]  # the first leader's end
        for replicas in (3, 1):
            operator.api.change("NodeSet", "gpu", spec={"replicas": replicas})
            try:
                await operator.lead(for_s=SETTLED_S)
            except* _Death:
                pass
            await operator.lead(for_s=SETTLED_S)
            operator.slurm.jobs[1] = job(1, "gpu-0")
        assert ["gpu-0"] == names_of(operator.api.pods)
        assert "RUNNING" == operator.slurm.jobs[1].state
        assert "" == operator.slurm.nodes.by_name["gpu-0"].reason
        assert 1 == operator.api.status("gpu")["replicas"]
        assert count >= 20, "there are writes at which it did not die"

    run(main)
