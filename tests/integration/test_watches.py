"""What our services follow of Kubernetes goes silent, or cannot be gone on from: they read it anew, and nothing is lost."""

import httpx

from sandbox.client import Sandbox
from tests.fault_bench import FaultBench
from tests.integration.residents import Residents, await_words, log_length
from tests.integration.worlds import Worlds, played


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


def compact(sandbox: Sandbox) -> None:
    """Let etcd forget all but the present: <https://etcd.io/docs/v3.6/dev-guide/api_grpc_gateway/>."""
    url = f"{sandbox.instance.url('etcd')}/v3/kv"
    everything = {"key": "AA==", "range_end": "AA==", "limit": 1}
    with httpx.Client(trust_env=False) as etcd:
        header = etcd.post(f"{url}/range", json=everything).raise_for_status().json()["header"]
        request = {"revision": header["revision"], "physical": True}
        etcd.post(f"{url}/compaction", json=request).raise_for_status()
