"""The completion message against the real slurmctld: what `squeue` and `sacct` call the end afterwards."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bridge.domain.lifecycle.actions import Outcome
from bridge.domain.lifecycle.rules import time_limits
from bridge.domain.model.jobs import JobEnd, JobPhase
from bridge.slurm import complete, jobs
from bridge.slurm.complete import ControllerHost, ControllerHosts
from bridge.slurm.jobs import Ending
from sandbox.client import Sandbox
from slurmclient.errors import Declined, LostReply, Malformed, SlurmError, Unauthorized, Unavailable
from slurmruntime.slurm.client import SlurmClient
from slurmruntime.values.ids import JobId, Sluid
from tests import faults
from tests.faults import Proxy
from tests.slurm.conftest import Submit
from tests.slurm.placeholders import in_phase, spec

NEVER_WAS = JobId(999_999)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        pytest.param(Outcome(), (JobEnd.COMPLETED, 0, 0), id="success"),
        pytest.param(Outcome(exit_code=3), (JobEnd.FAILED, 3, 0), id="exit code 3"),
        pytest.param(Outcome(exit_code=137), (JobEnd.FAILED, 137, 0), id="exit code 137"),
        pytest.param(Outcome(signal=9), (JobEnd.FAILED, 0, 9), id="signal 9"),
        pytest.param(Outcome(out_of_memory=True), (JobEnd.OUT_OF_MEMORY, 0, 125), id="OOM"),
    ],
)
async def test_a_running_placeholder_ends_as_its_pod_did(
    client: SlurmClient,
    controllers: ControllerHosts,
    submit: Submit,
    outcome: Outcome,
    expected: tuple[JobEnd, int, int],
) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)

    ending = await complete.complete(client, controllers, running.id, outcome, sluid=running.sluid)

    job = await in_phase(client, running.id, JobPhase.ENDED)
    assert Ending.ENDED is ending
    assert expected == (job.end, job.exit_code, job.signal)


async def test_success_after_the_time_limit_is_a_timeout(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit, slurm: Sandbox
) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    # "now" may be past by the time that it arrives, which Slurm refuses; it compares whole seconds.
    slurm.run("scontrol", "update", f"JobId={running.id}", "EndTime=now+2")
    await asyncio.sleep(2 + time_limits.SETTLED.total_seconds())

    await complete.complete(
        client, controllers, running.id, Outcome(timed_out=True), sluid=running.sluid
    )

    assert JobEnd.TIMEOUT is (await in_phase(client, running.id, JobPhase.ENDED)).end


@pytest.mark.parametrize("protocol", [43, 44, 45])
async def test_slurmctld_takes_the_message_in_each_protocol_version(
    client: SlurmClient,
    controllers: ControllerHosts,
    submit: Submit,
    protocol: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(complete, "protocol_for", lambda _: protocol)
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)

    await complete.complete(client, controllers, running.id, Outcome(exit_code=7), sluid=None)

    assert 7 == (await in_phase(client, running.id, JobPhase.ENDED)).exit_code


async def test_a_waiting_placeholder_becomes_cancelled(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit
) -> None:
    job_id = await submit(spec(hold=True))

    await complete.complete(client, controllers, job_id, Outcome(), sluid=None)

    assert JobEnd.CANCELLED is (await in_phase(client, job_id, JobPhase.ENDED)).end


async def test_an_ended_job_has_ended_already(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit
) -> None:
    job_id = await submit(spec(hold=True))
    await jobs.cancel(client, job_id)

    ending = await complete.complete(client, controllers, job_id, Outcome(exit_code=3), sluid=None)

    assert Ending.ALREADY_ENDED is ending


@pytest.mark.parametrize("sluid", [None, Sluid("s0000000000001")])
async def test_an_unknown_job_is_no_such_job(
    client: SlurmClient, controllers: ControllerHosts, sluid: Sluid | None
) -> None:
    ending = await complete.complete(client, controllers, NEVER_WAS, Outcome(), sluid=sluid)

    assert Ending.NO_SUCH_JOB is ending


async def test_with_a_sluid_a_job_that_has_the_id_now_is_left_alone(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit
) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)

    ending = await complete.complete(
        client, controllers, running.id, Outcome(), sluid=Sluid("s0000000000001")
    )

    assert Ending.NO_SUCH_JOB is ending
    assert JobPhase.RUNNING is (await in_phase(client, running.id, JobPhase.RUNNING)).phase


async def test_a_dependency_on_success_is_satisfied(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit
) -> None:
    first = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    second = await submit(spec(dependency=f"afterok:{first.id}"))

    await complete.complete(client, controllers, first.id, Outcome(), sluid=first.sluid)

    await in_phase(client, second, JobPhase.RUNNING)


async def test_an_expired_token_is_unauthorized_and_a_renewed_one_is_used(
    slurm: Sandbox, controllers: ControllerHosts, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    file.write_text(slurm.token())
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=file) as client:
        await client.dialect()
        file.write_text(slurm.token(now=datetime(2020, 1, 1, tzinfo=UTC)))
        with pytest.raises(Unauthorized):
            await complete.complete(client, controllers, NEVER_WAS, Outcome(), sluid=None)
        file.write_text(slurm.token())
        ending = await complete.complete(client, controllers, NEVER_WAS, Outcome(), sluid=None)

    assert Ending.NO_SUCH_JOB is ending


async def test_somebody_elses_token_may_not_end_the_job(
    slurm: Sandbox, controllers: ControllerHosts, submit: Submit, tmp_path: Path
) -> None:
    job_id = await submit(spec(hold=True))
    (tmp_path / "token").write_text(slurm.token("games"))
    async with SlurmClient.open(slurm.slurmrestd_url, token_file=tmp_path / "token") as client:
        with pytest.raises(Declined) as error:
            await complete.complete(client, controllers, job_id, Outcome(), sluid=None)

    assert 2010 == error.value.error_number


async def test_a_controller_that_is_not_there_has_done_nothing(client: SlurmClient) -> None:
    with pytest.raises(Unavailable, match="cannot reach slurmctld") as error:
        await complete.complete(
            client,
            ControllerHosts(ControllerHost(host="127.0.0.1", port=9)),
            NEVER_WAS,
            Outcome(),
            sluid=None,
        )

    assert not isinstance(error.value, LostReply)


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        pytest.param(faults.LOST_REPLY, LostReply, id="lost reply"),
        pytest.param(faults.slow(5), LostReply, id="too slow"),
        pytest.param(faults.Fault(reaches_server=True, cut_at=10), LostReply, id="cut off"),
        pytest.param(
            faults.Fault(reaches_server=False, answer=b"HTTP/1.1 400"),
            Malformed,
            id="not slurmctld",
        ),
    ],
)
async def test_whatever_comes_back_is_one_of_our_errors_and_asking_again_does_no_harm(
    client: SlurmClient,
    submit: Submit,
    slurm: Sandbox,
    fault: faults.Fault,
    expected: type[SlurmError],
) -> None:
    running = await in_phase(client, await submit(spec()), JobPhase.RUNNING)
    url = f"http://127.0.0.1:{slurm.slurmctld_port}"
    async with Proxy.to(url, framing=faults.slurm_message) as proxy:
        proxy.inject(fault)
        flaky = ControllerHosts(ControllerHost(host="127.0.0.1", port=proxy.port, timeout_s=1))
        with pytest.raises(SlurmError) as error:
            await complete.complete(client, flaky, running.id, Outcome(), sluid=running.sluid)
        again = await complete.complete(client, flaky, running.id, Outcome(), sluid=running.sluid)

    assert expected is type(error.value)
    assert (Ending.ALREADY_ENDED if fault.reaches_server else Ending.ENDED) is again
    assert JobEnd.COMPLETED is (await in_phase(client, running.id, JobPhase.ENDED)).end


async def test_many_end_at_once(
    client: SlurmClient, controllers: ControllerHosts, submit: Submit
) -> None:
    ids = [await submit(spec(hold=True)) for _ in range(16)]

    endings = await asyncio.gather(
        *(complete.complete(client, controllers, id_, Outcome(), sluid=None) for id_ in ids)
    )

    assert {Ending.ENDED} == set(endings)
