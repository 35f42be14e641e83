"""PrivateData and an ordinary user's token: what is hidden is named, never shown as if there were nothing."""

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sandbox.client import Sandbox
from slurmclient import Client
from slurmexporter.families import catalogue
from slurmexporter.text import people
from tests.exporter.conftest import command, environment, running_exporter
from tests.exporter.records import samples
from tests.servers import until


@contextmanager
def private(cluster: Sandbox, words: str) -> Iterator[None]:
    """Slurmctld with PrivateData."""
    before = cluster.slurm_conf.read_text()
    cluster.slurm_conf.write_text(f"{before}\nPrivateData={words}\n")
    cluster.run("scontrol", "reconfigure")
    try:
        yield
    finally:
        cluster.slurm_conf.write_text(before)
        cluster.run("scontrol", "reconfigure")


def checked(cluster: Sandbox, environ: Mapping[str, str]) -> str:
    """What `--check` says."""
    done = subprocess.run(
        command("--check"),
        env={**environment(cluster), **environ},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout


async def test_what_private_data_hides_is_said(cluster: Sandbox, slurm: Client, port: int) -> None:
    small = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
    job = await slurm.jobs.submit(flags=["EXTERNAL_JOB"], hold=True, **small)  # type: ignore[arg-type]  # a field of any name
    assert job.job_id
    with private(cluster, "jobs,nodes"):
        alice = {"SLURM_JWT": cluster.token("alice")}
        await until(
            lambda: "jobs,nodes" in cluster.run("scontrol", "show", "config"), 30, sandbox=cluster
        )
        with running_exporter(cluster, port=port, environ=alice) as exporter:
            exporter.until(
                lambda: exporter.value("slurm_exporter_degraded", reason="private_jobs") == 1
            )
            assert 1 == exporter.value("slurm_exporter_degraded", reason="private_nodes")
            assert 0 == exporter.value("slurm_exporter_data_fresh", source="nodes")
            families = exporter.families("/metrics/own") | exporter.families("/metrics/slinky")
            assert not {name for name in families if name.startswith("slurm_node")}
        assert "FAIL  PrivateData hides jobs, nodes of other users" in checked(cluster, alice)
        with running_exporter(cluster, port=port) as exporter:
            assert exporter.is_fresh("controllers")
            assert exporter.value("slurm_exporter_degraded", reason="private_jobs") is None
            exporter.until(lambda: exporter.is_fresh("nodes"))


async def test_users_are_named_only_if_asked_for(
    cluster: Sandbox, slurm: Client, port: int
) -> None:
    small = {"minimum_nodes": 1, "memory_per_node": {"set": True, "number": 100}}
    job = await slurm.jobs.submit(flags=["EXTERNAL_JOB"], name="t", **small)  # type: ignore[arg-type]  # a field of any name
    await slurm.nodes.drain("node-3", "fan")
    quiet = {"SLURM_EXPORTER_USER_NAMES": ""}
    with running_exporter(cluster, "--job-info", port=port, environ=quiet) as exporter:
        exporter.until(lambda: exporter.is_fresh("nodes") and exporter.is_fresh("shares"))
        exporter.until(
            lambda: f'slurm_job_info{{job_id="{job.job_id}"' in exporter.page("/metrics/own").text
        )
        for page in (*catalogue.NAMES, *catalogue.NATIVE_PAGES):
            named = {
                family
                for family, series in samples(exporter.page(f"/metrics/{page}").content).items()
                for labels in series
                if any(text for label, text in labels if label in people.LABELS)
            }
            assert set() == named, page
        own = exporter.families("/metrics/own")
        assert {"slurm_node_reason_info", "slurm_share_usage_norm"} <= own
        assert "slurm_user_jobs_by_state" not in own
        assert "slurm_account_jobs_by_state" in own
    with running_exporter(cluster, port=port) as exporter:
        exporter.until(lambda: "slurm_user_jobs_by_state" in exporter.families("/metrics/own"))
    await slurm.nodes.resume("node-3")
