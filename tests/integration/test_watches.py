"""What our services follow of Kubernetes goes silent, or cannot be gone on from: they read it anew, and nothing is lost."""

import httpx
import pytest

from sandbox.client import Sandbox
from tests.fault_bench import FaultBench
from tests.faults import Fault
from tests.integration.residents import Residents, await_words, log_length
from tests.integration.worlds import Worlds, played

PATIENCE = Fault(
    reaches_server=False,
    answer=b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 86400\r\nContent-Length: 0\r\n\r\n",
)


def test_what_a_watch_would_go_on_from_is_compacted_away(
    worlds: Worlds, residents: Residents, bench: FaultBench, full_sandbox: Sandbox
) -> None:
    since = log_length(full_sandbox)
    ends = worlds.submit("ends", annotations=played(seconds=3))
    worlds.await_phase("ends", "Running")
    for proxy in bench.links("apiserver"):
        proxy.freeze("GET", "watch=")
    late = worlds.submit("late", annotations=played(seconds=1))

    full_sandbox.stop("apiserver", signal="KILL")
    compact(full_sandbox)
    full_sandbox.start("apiserver")
    for proxy in bench.links("apiserver"):
        proxy.cut()

    # A list: a watch that could be gone on from needs none. (410 makes the reflector list; so does a new leader.)
    await_words(full_sandbox, "reflector.listed", since=since)
    for uid in (ends, late):
        assert "COMPLETED" == worlds.await_accounted(uid, 90).state
    assert residents.are_as_they_were()


@pytest.mark.attack(
    "answer a watch with a Retry-After of a day, from a proxy on the way to the API server",
    "five minutes at most",
)
def test_a_days_retry_after_does_not_blind_for_a_day(
    worlds: Worlds, bench: FaultBench, full_sandbox: Sandbox
) -> None:
    since, link = log_length(full_sandbox), bench.link("extender", "apiserver")
    link.inject(PATIENCE, "GET", "watch=")
    link.cut()

    await_words(full_sandbox, '"retry_in_s": 300.0', since=since)

    bench.kill("extender")  # the five minutes are not waited for
    worlds.submit("after")
    worlds.await_phase("after", "Running")


def compact(sandbox: Sandbox) -> None:
    """Let etcd forget all but the present: <https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/>."""
    url = f"{sandbox.instance.url('etcd')}/v3/kv"
    everything = {"key": "AA==", "range_end": "AA==", "limit": 1}
    with httpx.Client(trust_env=False) as etcd:
        header = etcd.post(f"{url}/range", json=everything).raise_for_status().json()["header"]
        request = {"revision": header["revision"], "physical": True}
        etcd.post(f"{url}/compaction", json=request).raise_for_status()
