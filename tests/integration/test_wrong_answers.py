"""slurmrestd answers, and what it says is wrong: nothing is lost, doubled or ended by that.

The bodies are what Slurm 26.05 was seen to send, or what stands between it and us.
"""

import json

import pytest

from sandbox.client import Sandbox
from slurmruntime.values import names
from tests import faults
from tests.fault_bench import FaultBench
from tests.faults import Fault, Proxy
from tests.integration.residents import Residents, are_ready, await_unready, snapshot_age_s
from tests.integration.worlds import Worlds, condition, played
from tests.servers import wait_until

_STATES = "/jobs/state"


def error(number: int, words: str, **body: object) -> str:
    """A body of slurmrestd's with one error."""
    one = {"description": words, "error_number": number, "error": words, "source": "slurm_load"}
    return json.dumps({"errors": [one], "warnings": [], "meta": {}, **body})


def await_readings(proxy: Proxy, count: int) -> None:
    """Wait until Slurm was read so many times more."""
    before = proxy.count("GET", _STATES)
    wait_until(lambda: proxy.count("GET", _STATES) >= before + count, 60)


NO_CONTROLLER = error(1007, "Zero Bytes were transmitted or received", jobs=[])
BODIES = [
    pytest.param(faults.answers(200, NO_CONTROLLER), id="200 with errors"),
    pytest.param(faults.answers(500, NO_CONTROLLER), id="500"),
    pytest.param(faults.answers(504, error(5004, "Timed out")), id="504"),
    pytest.param(faults.answers(200, '{"jobs":[{"job_id":1,"jo'), id="half JSON"),
    pytest.param(faults.TRUNCATED, id="cut off"),
    pytest.param(faults.answers(200, "{}"), id="no list"),
    pytest.param(faults.answers(200, json.dumps({"jobs": [], "errors": []})), id="an empty list"),
]


@pytest.mark.parametrize("fault", BODIES)
def test_a_reading_goes_wrong_once(
    worlds: Worlds, residents: Residents, bench: FaultBench, fault: Fault
) -> None:
    uid = worlds.submit("lives", annotations=played(seconds=1))
    for proxy in bench.links("slurmrestd"):
        proxy.inject(fault, "GET", _STATES)

    assert "COMPLETED" == worlds.await_accounted(uid).state
    for service in ("extender", "controllers"):
        proxy = bench.link(service, "slurmrestd")
        # The second reading from here on began after what the first one said was acted on.
        await_readings(proxy, 3)
    assert residents.are_as_they_were()
    bench.calm()


def test_slurm_is_odd_for_long(
    worlds: Worlds, residents: Residents, bench: FaultBench, full_sandbox: Sandbox
) -> None:
    for proxy in bench.links("slurmrestd"):
        proxy.inject(faults.answers(200, NO_CONTROLLER), times=10_000)
    try:
        uid = worlds.submit("comes", annotations=played(seconds=1))
        await_unready(full_sandbox, "no news of Slurm for")
        for service in ("extender", "controllers"):
            assert snapshot_age_s(full_sandbox, service) > 15
        assert residents.are_as_they_were()
    finally:
        bench.calm()

    assert "COMPLETED" == worlds.await_accounted(uid).state
    assert residents.are_as_they_were()
    wait_until(lambda: are_ready(full_sandbox), 60, sandbox=full_sandbox)


def test_slurms_list_is_empty_again_and_again(
    residents: Residents, bench: FaultBench, full_sandbox: Sandbox
) -> None:
    """Jobs that were there and are not listed are asked for by name before anything is concluded."""
    empty = faults.answers(200, json.dumps({"jobs": [], "errors": []}))
    for proxy in bench.links("slurmrestd"):
        proxy.inject(empty, "GET", _STATES, times=10_000)
        await_readings(proxy, 5)

    runs = residents.worlds.await_pod("runs", bool)
    assert "False" != condition(runs).get("status"), "nobody says that its placeholder is lost"
    bench.calm()
    assert residents.are_as_they_were()
    wait_until(lambda: are_ready(full_sandbox), 60, sandbox=full_sandbox)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(
            faults.answers(500, error(-1, "Unspecified error", job_id=4711), reaches_server=True),
            id="500 with a job id, and accepted",
        ),
        pytest.param(
            faults.answers(500, error(-1, "Unspecified error", job_id=0)), id="500, and refused"
        ),
        pytest.param(
            faults.late(4, faults.answers(504, error(5004, "Timed out"))), id="504, accepted later"
        ),
        pytest.param(faults.late(4), id="no answer, accepted later"),
        pytest.param(
            faults.answers(200, '{"job_id":', reaches_server=True), id="half an answer, accepted"
        ),
        pytest.param(
            faults.answers(200, error(2018, "Duplicate job id", job_id=0)), id="200 with errors"
        ),
    ],
)
def test_a_submit_is_answered_wrongly(worlds: Worlds, bench: FaultBench, fault: Fault) -> None:
    bench.link("extender", "slurmrestd").inject(fault, "POST", "/job/submit")

    uid = worlds.submit("once", annotations=played(seconds=1))

    assert "COMPLETED" == worlds.await_accounted(uid, 90).state
    pod = worlds.await_pod("once", bool)
    assert "Succeeded" == pod["status"]["phase"]
    assert names.JOB_ID_LABEL in pod["metadata"]["labels"]
    bench.calm()


def test_a_service_that_starts_while_the_api_server_is_away_waits_for_it(
    bench: FaultBench, full_sandbox: Sandbox
) -> None:
    """One that ended for that would be started again later and later: up to five minutes in a cluster."""
    away = faults.answers(502, "<html>", content_type="text/html")
    apiserver = bench.link("controllers", "apiserver")
    apiserver.inject(away, "GET", "/namespaces/kube-system", times=3)
    bench.kill("controllers")
    pid = full_sandbox.status()["controllers"].pid

    wait_until(lambda: full_sandbox.status()["controllers"].state == "up", 60)
    wait_until(lambda: are_ready(full_sandbox), 60, sandbox=full_sandbox)

    assert apiserver.count("GET", "/namespaces/kube-system") >= 4
    assert pid == full_sandbox.status()["controllers"].pid
