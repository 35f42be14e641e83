"""Batch jobs and arrays, at a Slurm with a slurmd."""

import asyncio

from sandbox.client import Sandbox
from slurmclient import Added, Client, Modified, TokenFile
from tests.client.conftest import Row


async def test_the_tasks_of_an_array_are_watched_each_on_its_own(
    slurm_with_slurmd: Sandbox,
) -> None:
    slurm = slurm_with_slurmd
    token = TokenFile(slurm.token_file)
    async with Client(slurm.slurmrestd_url, token=token) as client:
        script = "#!/bin/sh\ntrue\n"
        array = await client.jobs.submit(script, name="array", array="1-3", hold=True, key="array")
        again = await client.jobs.submit(script, name="array", array="1-3", key="array")
        assert (array.job_id, False) == (again.job_id, again.is_new)
        states = await client.jobs.states([array.job_id])
        assert {f"{array.job_id}_{task}" for task in (1, 2, 3)} == set(states)
        await client.jobs.cancel(f"{array.job_id}_2")
        await client.jobs.release(array.job_id)
        ended: set[int] = set()
        async with asyncio.timeout(60):
            async for event in client.jobs.watch(as_=Row, interval_s=0.2):
                if isinstance(event, Added | Modified) and event.new.name == "array":
                    ended |= {event.new.job_id} if "COMPLETED" in event.new.job_state else set()
                if len(ended) == 2:
                    break
        parts = {
            part.array_task_id: part.job_state for part in await client.jobs.parts(array.job_id)
        }
    assert {1: {"COMPLETED"}, 3: {"COMPLETED"}} == parts, "a task that never ran leaves nothing"


async def test_a_batch_job_is_waited_for_and_its_exit_code_read(slurm_with_slurmd: Sandbox) -> None:
    async with Client(slurm_with_slurmd.slurmrestd_url, token=slurm_with_slurmd.token()) as client:
        job = await client.jobs.submit("#!/bin/sh\nexit 3\n", name="exits")
        ended = await client.jobs.wait(job.job_id, timeout_s=60, interval_s=0.1)
        assert (frozenset({"FAILED"}), 3) == (ended.job_state, ended.exit_code.return_code)
