"""What a real Slurm goes through, and what the exporter says of it."""

import asyncio

from sandbox.client import Sandbox
from slurmclient import Client
from slurmclient.models import Job
from tests.exporter.conftest import running_exporter
from tests.exporter.records import samples

SMALL = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
WHERE = {"partition": "slurm-bridge", "account": "root"}


async def submit(slurm: Client, **fields: object) -> int:
    answer = await slurm.jobs.submit(flags=["EXTERNAL_JOB"], **{"name": "t", **SMALL, **fields})  # type: ignore[arg-type]  # a field of any name
    return answer.job_id


async def state(slurm: Client, job_id: int, wanted: str) -> Job:
    """The job once it is in a state."""
    async with asyncio.timeout(30):
        while True:
            job = await slurm.jobs.get(job_id)
            if wanted in job.job_state:
                return job
            await asyncio.sleep(0.1)


async def test_jobs_count_once_also_over_restarts_and_a_wipe_of_slurmctld(
    cluster: Sandbox, slurm: Client, port: int
) -> None:
    with running_exporter(cluster, "--stale-after=3s", "--timeout=2s", port=port) as exporter:
        first = await submit(slurm)
        second = await submit(slurm)
        await state(slurm, second, "RUNNING")
        exporter.until(lambda: exporter.value("slurm_job_starts_total", **WHERE) == 2)
        await slurm.jobs.cancel(first)
        ended = {**WHERE, "state": "CANCELLED"}
        exporter.until(lambda: exporter.value("slurm_job_ends_total", **ended) == 1)

        cluster.stop("slurmctld")
        up = {"source": "slurmctld"}
        exporter.until(lambda: exporter.value("slurm_up", **up) == 0)
        running = {"state": "RUNNING"}
        exporter.until(lambda: exporter.value("slurm_jobs_by_state", **running) is None)
        assert "slurm_jobs_running_total" not in exporter.families("/metrics/slinky")
        assert (exporter.value("slurm_exporter_data_age_seconds", source="jobs") or 0) >= 3
        cluster.start("slurmctld")
        exporter.until(lambda: exporter.value("slurm_jobs_by_state", **running) == 1)
        assert 1 == exporter.value("slurm_up", **up)
        assert (2, 2, 1) == (
            exporter.value("slurm_job_submits_total", **WHERE),
            exporter.value("slurm_job_starts_total", **WHERE),
            exporter.value("slurm_job_ends_total", **ended),
        )

        cluster.restart("slurmctld", wipe=True)
        cluster.create_slurm_nodes()
        lost = {**WHERE, "state": "LOST"}
        exporter.until(lambda: exporter.value("slurm_job_ends_total", **lost) == 1)
        again = await submit(slurm)
        assert again <= second, "slurmctld uses its ids again"
        exporter.until(lambda: exporter.value("slurm_job_starts_total", **WHERE) == 3)


async def test_a_hanging_slurmctld_is_asked_less_and_looks_gone(
    cluster: Sandbox, port: int
) -> None:
    with running_exporter(cluster, "--stale-after=2s", "--timeout=1s", port=port) as exporter:
        cluster.pause("slurmctld")
        try:
            exporter.until(lambda: exporter.value("slurm_exporter_pace") == 4)
            exporter.until(lambda: exporter.value("slurm_nodes_available") is None)
            assert 0 == exporter.value("slurm_up", source="slurmctld")
        finally:
            cluster.resume("slurmctld")
        exporter.until(lambda: exporter.value("slurm_up", source="slurmctld") == 1)
        exporter.until(lambda: exporter.value("slurm_exporter_pace") == 1)
        exporter.until(lambda: exporter.value("slurm_nodes_available") is not None)


async def test_odd_jobs_cost_themselves(cluster: Sandbox, slurm: Client, port: int) -> None:
    script = "#!/bin/sh\n"
    array = await slurm.jobs.submit(script, name="huge", array="0-99999", hold=True, **SMALL)  # type: ignore[arg-type]  # a field of any name
    odd = await submit(slurm, name="plain")
    cluster.run("scontrol", "update", f"JobId={odd}", "JobName=a\udcff")
    with running_exporter(cluster, "--job-info", port=port) as exporter:
        pending = {"partition": "slurm-bridge", "state": "PENDING"}
        exporter.until(
            lambda: exporter.value("slurm_partition_jobs_by_state", **pending) == 100_000
        )
        exporter.until(lambda: exporter.value("slurm_jobs_by_state", state="RUNNING") == 1)
        names = {
            dict(labels)["name"] for labels in samples(exporter.page().content)["slurm_job_info"]
        }
        assert {"huge", "a\ufffd"} == names
        slinky = samples(exporter.page("/metrics/slinky").content)
        assert {(): 1} == slinky["slurm_jobs_pending_total"], "there, an array is one job"
    await slurm.jobs.cancel(array.job_id)
    cluster.restart("slurmctld", wipe=True)  # an array of this size is slow as long as it is known
    cluster.create_slurm_nodes()


async def test_an_expired_token_looks_like_no_slurm(cluster: Sandbox, port: int) -> None:
    token = cluster.token_file.parent / "exporter-token"
    token.write_text(cluster.token())
    arguments = (f"--token-file={token}", "--stale-after=2s")
    try:
        with running_exporter(cluster, *arguments, port=port) as exporter:
            token.write_text("nonsense")
            exporter.until(lambda: exporter.value("slurm_up", source="slurmctld") == 0)
            exporter.until(lambda: not exporter.is_fresh("jobs"))
            token.write_text(cluster.token())
            exporter.until(lambda: exporter.is_fresh("jobs"))
    finally:
        token.unlink()


async def test_scrapes_get_kept_bytes_and_ask_slurm_nothing(cluster: Sandbox, port: int) -> None:
    with running_exporter(cluster, "--interval=1h", port=port) as exporter:
        exporter.until(lambda: exporter.is_fresh("accounting"))
        asked = samples(exporter.page().content)["slurm_exporter_requests_total"]
        page = [exporter.page() for _ in range(20)][-1]
        zipped = exporter.page(**{"Accept-Encoding": "gzip"})
        assert asked == samples(page.content)["slurm_exporter_requests_total"]
        assert "gzip" == zipped.headers["Content-Encoding"]
        assert samples(zipped.content).keys() == samples(page.content).keys()
        assert "text/plain; version=0.0.4; charset=utf-8" == page.headers["Content-Type"]
        for path in ("/", "/livez", "/readyz", "/metrics/exporter"):
            assert exporter.page(path).is_success
