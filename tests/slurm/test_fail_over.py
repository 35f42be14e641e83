"""slurmctld with a backup host, and two slurmrestd: whoever is in charge, or can be reached, is asked."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm import complete, jobs
from bridge.slurm.complete import ControllerHost, ControllerHosts
from bridge.slurm.jobs import Ending
from sandbox import assembly, assets
from sandbox.assets import Asset
from sandbox.assets.kits import AssetName
from sandbox.client import Sandbox
from sandbox.slurm import daemon_environment
from slurmclient.errors import InStandby, LostReply, Unavailable
from slurmclient.watching import listing
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.slurm.errors import IN_STANDBY
from slurmruntime.values.ids import JobId
from tests import faults
from tests.faults import Proxy
from tests.servers import wait_until
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import in_phase, spec

NOBODY = ControllerHost(host="127.0.0.1", port=9)
"""A host that has died."""

BACKUP = "backup-of-slurmctld"
"""Its host name, in a name space of its own: slurmctld finds its place among the hosts by it."""


def answer(code: int) -> faults.Fault:
    """A response of slurmctld with this return code, in place of doing anything."""
    header = complete._HEADER.pack(45 << 8, 0, complete.RESPONSE_SLURM_RC, 4, 0, 0, 0)
    content = header + complete._RETURN_CODE.pack(code)
    return faults.Fault(reaches_server=False, answer=complete._LENGTH.pack(len(content)) + content)


def listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def backup(slurm: Sandbox) -> Iterator[ControllerHost]:
    """A real slurmctld in standby beside the sandbox's; it would take over after 18 hours."""
    if os.getuid() or not shutil.which("unshare"):
        pytest.skip("a second slurmctld needs a host name of its own, which only root can give")
    port, conf = free_port(), slurm.slurm_conf.with_name("backup.conf")
    log = conf.with_suffix(".log")
    text = slurm.slurm_conf.read_text()
    text = text.replace(f"SlurmctldPort={slurm.slurmctld_port}", f"SlurmctldPort={port}")
    text = text.replace("slurmctld.pid", "backup.pid")
    conf.write_text(f"{text}\nSlurmctldHost={BACKUP}(127.0.0.1)\nSlurmctldTimeout=65533\n")
    asset = assets.where(assembly.needed(slurm.instance.options))[AssetName.SLURM]
    assert isinstance(asset, Asset)
    environment = {**daemon_environment(slurm.instance, asset), "SLURM_CONF": str(conf)}
    if "NSS_WRAPPER_HOSTS" in environment:
        hosts = slurm.slurm_conf.with_name("backup.hosts")
        hosts.write_text(f"127.0.0.1 {BACKUP} {socket.gethostname()} localhost\n")
        environment["NSS_WRAPPER_HOSTS"] = str(hosts)
    with log.open("w") as output:
        process = subprocess.Popen(
            [
                *("unshare", "--uts", "sh", "-c", f'hostname {BACKUP} && exec env "$@"', "sh"),
                *(f"{name}={value}" for name, value in environment.items()),
                *(str(asset.bin / "slurmctld"), "-D", "-f", str(conf)),
            ],
            stdout=output,
            stderr=output,
        )
    try:
        wait_until(lambda: process.poll() is not None or listens(port), 30, sandbox=slurm)
        assert process.poll() is None, log.read_text()
        yield ControllerHost(host="127.0.0.1", port=port, timeout_s=1)
    finally:
        process.terminate()
        process.wait()


async def test_a_real_backup_that_is_not_in_charge_is_passed_over(
    backup: ControllerHost, client: SlurmClient, submit: Submit, slurm: Sandbox
) -> None:
    """Slurm 26.05's takes the message and does not respond."""
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    controllers = ControllerHosts(
        backup, ControllerHost(host="127.0.0.1", port=slurm.slurmctld_port)
    )

    ending = await complete.complete(
        client, controllers, running.id, Outcome(exit_code=3), sluid=running.sluid
    )

    assert Ending.ENDED is ending
    assert 3 == (await in_phase(client, running.id, JobPhase.ENDED)).exit_code


@pytest.mark.parametrize("code", IN_STANDBY)
async def test_a_host_in_standby_is_passed_over_and_then_asked_last(
    client: SlurmClient, submit: Submit, slurm: Sandbox, code: int
) -> None:
    running = [await in_phase(client, await submit(spec()), JobPhase.RUNNING) for _ in range(2)]
    url = f"http://127.0.0.1:{slurm.slurmctld_port}"
    async with Proxy.to(url, framing=faults.slurm_message) as proxy:
        proxy.inject(answer(code), times=2)
        controllers = ControllerHosts(
            NOBODY,
            ControllerHost(host="127.0.0.1", port=proxy.port),
            ControllerHost(host="127.0.0.1", port=slurm.slurmctld_port),
        )
        endings = [
            await complete.complete(client, controllers, job.id, Outcome(), sluid=job.sluid)
            for job in running
        ]

    assert [Ending.ENDED] * 2 == endings
    assert 1 == len(proxy.requests)
    assert JobEnd.COMPLETED is (await in_phase(client, running[0].id, JobPhase.ENDED)).end


async def test_a_request_that_the_lost_host_had_carried_out_has_ended_already(
    client: SlurmClient, submit: Submit, slurm: Sandbox
) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    url = f"http://127.0.0.1:{slurm.slurmctld_port}"
    async with Proxy.to(url, framing=faults.slurm_message) as proxy:
        proxy.inject(faults.LOST_REPLY)
        controllers = ControllerHosts(
            ControllerHost(host="127.0.0.1", port=proxy.port),
            ControllerHost(host="127.0.0.1", port=slurm.slurmctld_port),
        )
        ending = await complete.complete(
            client, controllers, running.id, Outcome(), sluid=running.sluid
        )

    assert Ending.ALREADY_ENDED is ending


async def test_if_nobody_is_in_charge_all_hosts_are_named(
    client: SlurmClient, slurm: Sandbox
) -> None:
    url = f"http://127.0.0.1:{slurm.slurmctld_port}"
    async with Proxy.to(url, framing=faults.slurm_message) as proxy:
        proxy.inject(answer(IN_STANDBY[0]))
        standby = ControllerHost(host="127.0.0.1", port=proxy.port)
        with pytest.raises(InStandby) as error:
            await complete.complete(
                client, ControllerHosts(NOBODY, standby), JobId(1), Outcome(), sluid=None
            )

    assert str(NOBODY) in str(error.value)
    assert f"{standby} is not in charge" in str(error.value)


async def test_a_slurmrestd_that_cannot_be_reached_is_replaced_by_the_next(slurm: Sandbox) -> None:
    async with (
        Proxy.to(slurm.slurmrestd_url) as proxy,
        SlurmClient.open(
            [f"http://127.0.0.1:{NOBODY.port}", proxy.url], token_file=slurm.token_file
        ) as client,
    ):
        job_id = await jobs.submit(client, spec(hold=True))
        await jobs.cancel(client, job_id)

    assert 1 == proxy.count("POST", "/job/submit")


async def test_what_may_have_been_sent_is_not_sent_to_another_slurmrestd(slurm: Sandbox) -> None:
    """The next request is: the first server does not respond."""
    async with (
        Proxy.to(slurm.slurmrestd_url) as first,
        Proxy.to(slurm.slurmrestd_url) as second,
        SlurmClient.open([first.url, second.url], token_file=slurm.token_file) as client,
    ):
        await client.dialect()
        first.inject(faults.LOST_REPLY, "POST", "/job/submit")
        with pytest.raises(LostReply):
            await jobs.submit(client, spec(hold=True))
        assert 0 == second.count("POST", "")

        await jobs.cancel(client, await jobs.submit(client, spec(hold=True)))

    assert 1 == second.count("POST", "/job/submit")


async def test_a_slurmrestd_without_slurmctld_is_replaced_at_the_next_request(
    slurm: Sandbox,
) -> None:
    refusal = '{"errors": [{"error_number": 1800, "error": "Unable to contact slurmctld"}]}'
    async with (
        Proxy.to(slurm.slurmrestd_url) as first,
        SlurmClient.open([first.url, slurm.slurmrestd_url], token_file=slurm.token_file) as client,
    ):
        await client.dialect()
        first.inject(faults.answers(500, refusal), "GET", "/jobs/state", times=9)
        with pytest.raises(Unavailable):
            await listing.all_jobs(client)

        await listing.all_jobs(client)


async def test_all_addresses_are_named_if_no_slurmrestd_can_be_reached(slurm: Sandbox) -> None:
    urls = ["http://127.0.0.1:9", "http://user:secret@127.0.0.1:7"]
    async with SlurmClient.open(urls, token_file=slurm.token_file) as client:
        with pytest.raises(Unavailable) as error:
            await client.dialect()

    assert "http://127.0.0.1:9" in str(error.value)
    assert "http://127.0.0.1:7" in str(error.value)
    assert "secret" not in str(error.value)
