"""A leader whose wall clock is wrong: time limits are Slurm's, and so is the time."""

from pathlib import Path

from sandbox.client import Sandbox
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.clock_ahead import controllers_an_hour_ahead
from tests.integration.worlds import PATIENCE_S, Worlds, played
from tests.servers import wait_until


def test_a_leader_an_hour_ahead_ends_no_pod_and_no_job(
    worlds: Worlds, full_sandbox: Sandbox, tmp_path: Path
) -> None:
    limit = {f"{REQUEST_PREFIX}timelimit": "30"}
    uids = {name: worlds.submit(name, annotations=limit) for name in ("a", "b")}
    for name in uids:
        worlds.await_phase(name, "Running")
    log = tmp_path / "controllers.log"

    with controllers_an_hour_ahead(full_sandbox, log):
        wait_until(lambda: b"clock.differs" in log.read_bytes(), PATIENCE_S, sandbox=full_sandbox)
        short = worlds.submit("short", annotations={**limit, **played(seconds=1)})
        ended = worlds.await_accounted(short)
        # The others were in its queue before, so it has looked at them.

    assert "COMPLETED" == ended.state
    for name, uid in uids.items():
        pod = worlds.await_pod(name, bool)
        assert "deletionTimestamp" not in pod["metadata"]
        (job,) = worlds.live(uid)
        limits = ("squeue", "--noheader", "-j", str(job.id), "-O", "TimeLimit")
        assert ("RUNNING", "30:00") == (job.state, full_sandbox.run(*limits).strip())
