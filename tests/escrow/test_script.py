"""The script that slurmctld runs, with a real shell, curl and TLS: whatever happens, it ends by itself, and with 0."""

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from starlette.responses import PlainTextResponse, Response

from tests.make.certificates import Authority
from tests.make.escrow_site import END, ENDS_S, SCRIPT, START, TOKEN, Site

pytestmark = pytest.mark.slow

QUIETLY = (0, "")


async def go(_number: int) -> Response:
    return PlainTextResponse("go\n")


async def wait(_number: int) -> Response:
    return PlainTextResponse("wait: team-a/old\n")


async def hang(_number: int) -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def refuse(_number: int) -> Response:
    return PlainTextResponse("go away\n", 401)


async def odd(_number: int) -> Response:
    return PlainTextResponse("<html>maybe</html>")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


async def test_a_start_is_asked_about_with_the_token(site: Site) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url)
        assert QUIETLY == await site.run()
        assert [("/v1/start", f"Bearer {TOKEN}", {"job": 7})] == bridge.said


async def test_it_asks_again_until_it_may_go(site: Site) -> None:
    async def third(number: int) -> Response:
        return await (go if number == 3 else wait)(number)

    async with site.serving(third) as (bridge, url):
        site.configure(url, DEADLINE_S=20)
        assert QUIETLY == await site.run()
        assert 3 == len(bridge.said)


async def test_it_ends_at_its_deadline_although_it_is_to_wait(site: Site) -> None:
    async with site.serving(wait) as (bridge, url):
        site.configure(url, AWAY_S=1)
        assert QUIETLY == await site.run()
        assert 2 <= len(bridge.said) <= 5


@pytest.mark.parametrize("answer", [hang, refuse, odd])
async def test_it_ends_although_nobody_answers_it(
    site: Site, answer: Callable[[int], Awaitable[Response]]
) -> None:
    async with site.serving(answer) as (bridge, url):
        site.configure(url, DEADLINE_S=60)
        assert QUIETLY == await site.run()
        assert 1 <= len(bridge.said) <= 3


async def test_it_ends_although_nobody_is_there(site: Site) -> None:
    async with site.serving(go) as (_, url):
        pass
    site.configure(url, DEADLINE_S=60)
    assert QUIETLY == await site.run()


async def test_it_asks_although_all_its_files_are_closed(site: Site) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url)
        process = await asyncio.create_subprocess_exec(
            *("/bin/sh", "-c", 'exec "$0" <&- >&- 2>&-', str(site.script)),
            env={"SLURM_JOB_ID": "7", "SLURM_SCRIPT_CONTEXT": START},
        )
        async with asyncio.timeout(ENDS_S):
            assert 0 == await process.wait()
        assert [("/v1/start", f"Bearer {TOKEN}", {"job": 7})] == bridge.said


async def test_the_second_is_asked_if_the_first_does_not_answer(site: Site) -> None:
    async with site.serving(hang) as (_, first), site.serving(go) as (second, url):
        site.configure(first, url, DEADLINE_S=60)
        assert QUIETLY == await site.run()
        assert 1 == len(second.said)


async def test_whoever_has_another_certificate_gets_no_token(site: Site) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url)
        (site.folder / "ca.crt").write_bytes(Authority().certificate)
        assert QUIETLY == await site.run()
        site.configure(url.replace("https", "http"))
        assert QUIETLY == await site.run()
        assert [] == bridge.said


async def test_an_end_is_told_to_all_and_waits_for_nobody(site: Site) -> None:
    async with site.serving(hang) as (first, one), site.serving(go) as (second, two):
        site.configure(one, two)
        assert QUIETLY == await site.run(END)
        assert ["/v1/end"] == [path for path, _, _ in first.said]
        assert ["/v1/end"] == [path for path, _, _ in second.said]


async def test_only_jobs_of_the_partitions_ask(site: Site) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url, PARTITIONS="gpu hybrid")
        assert QUIETLY == await site.run()
        assert [] == bridge.said
        assert QUIETLY == await site.run(SLURM_JOB_PARTITION="hybrid")
        assert 1 == len(bridge.said)


@pytest.mark.parametrize(
    "text", ["URLS='https://\n", "exit 3\n", "false; )\n", "DEADLINE_S=soon\n"]
)
async def test_faulty_settings_cost_no_job(site: Site, text: str) -> None:
    site.configure("https://127.0.0.1:1")
    with (site.folder / f"{SCRIPT.name}.conf").open("a") as file:
        file.write(text)
    code, _ = await site.run()
    assert 0 == code


@pytest.mark.parametrize("job_id", ["", "7; true", "-1"])
async def test_without_a_job_nobody_is_asked(site: Site, job_id: str) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url)
        assert QUIETLY == await site.run(SLURM_JOB_ID=job_id)
        assert [] == bridge.said


async def test_without_token_or_settings_nobody_is_asked(site: Site) -> None:
    assert QUIETLY == await site.run()
    async with site.serving(go) as (bridge, url):
        site.configure(url)
        site.token_file.unlink()
        assert QUIETLY == await site.run()
        assert [] == bridge.said


async def test_a_sites_own_scripts_run_before_in_their_order(site: Site) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url, PROLOGS=site.own("a", "b"), EPILOGS=site.own("c"))
        assert QUIETLY == await site.run()
        assert [START + " a", START + " b"] == site.ran()
        assert QUIETLY == await site.run(END)
        assert END + " c" == site.ran()[-1]
        assert ["/v1/start", "/v1/end"] == [path for path, _, _ in bridge.said]


async def test_a_sites_own_script_that_fails_decides_and_no_other_runs(site: Site) -> None:
    async with site.serving(go) as (bridge, url):
        site.configure(url, PROLOGS=site.own("a", "b", code=3))
        assert (3, "") == await site.run()
        assert [START + " a"] == site.ran()
        assert [] == bridge.said


async def test_a_sites_own_scripts_run_although_ours_has_nothing_to_do(site: Site) -> None:
    site.configure(PROLOGS=site.own("a"), PARTITIONS="other")
    assert QUIETLY == await site.run()
    assert [START + " a"] == site.ran()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
async def test_told_to_end_it_does_not_fail(site: Site, number: signal.Signals) -> None:
    async with site.serving(hang) as (bridge, url):
        site.configure(url)
        process = await site.start()
        await bridge.asked.wait()
        process.send_signal(number)
        async with asyncio.timeout(ENDS_S):
            assert 0 == await process.wait()


async def test_the_token_is_on_no_command_line(site: Site) -> None:
    async with site.serving(hang) as (bridge, url):
        site.configure(url)
        process = await site.start()
        await bridge.asked.wait()
        lines = await asyncio.to_thread(_command_lines)
        assert any(url.encode() in line for line in lines)
        assert not any(TOKEN.encode() in line for line in lines)
        process.terminate()
        await process.wait()


def _command_lines() -> list[bytes]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # it has ended
            found.append(file.read_bytes())
    return found


def test_it_can_be_executed() -> None:
    assert os.access(SCRIPT, os.X_OK)
