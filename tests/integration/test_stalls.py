"""A process of ours stands still for longer than a request may take: afterwards somebody leads again, and works."""

import time

import httpx

from sandbox.client import Sandbox
from tests.integration.worlds import Worlds, played
from tests.servers import wait_until

_LONGER_THAN_A_REQUEST_S = 11.0
"""`kubernetes.request_timeout_s` is 10 s: then the time-outs of a request and of whoever asked run out in one turn."""

_ONE_LEASE_AND_ONE_START_S = 30.0
"""4 s of lease here, up to a second until it is renewed, and a process that starts, on a machine with other things to do."""


def stall(sandbox: Sandbox, service: str) -> None:
    """Hang a leader in the middle of a renewal, and let the API server answer only when the leader has woken up.

    The pauses are the fault itself; nothing is waited for.
    """
    sandbox.pause("apiserver")
    try:
        time.sleep(0.9)  # a renewal is under way by now
        sandbox.pause(service)
        try:
            time.sleep(_LONGER_THAN_A_REQUEST_S)
        finally:
            sandbox.resume(service)
        time.sleep(0.8)  # the next call is not answered before the leader's work has been cancelled
    finally:
        sandbox.resume("apiserver")


def await_livez(sandbox: Sandbox, service: str) -> None:
    address = f"{sandbox.instance.url(f'{service}-health')}/livez"

    def is_live() -> bool:
        try:
            return httpx.get(address, trust_env=False).is_success
        except httpx.TransportError:  # it starts
            return False

    wait_until(is_live, _ONE_LEASE_AND_ONE_START_S, sandbox=sandbox)


def test_an_extender_that_stood_still_places_pods_again(
    worlds: Worlds, full_sandbox: Sandbox
) -> None:
    worlds.submit("before", annotations=played(seconds=1))
    worlds.await_phase("before", "Succeeded")

    stall(full_sandbox, "extender")

    worlds.submit("after")
    worlds.await_phase("after", "Running", deadline_s=_ONE_LEASE_AND_ONE_START_S)
    await_livez(full_sandbox, "extender")


def test_controllers_that_stood_still_end_jobs_again(worlds: Worlds, full_sandbox: Sandbox) -> None:
    uid = worlds.submit("ends", annotations=played(seconds=_LONGER_THAN_A_REQUEST_S))
    worlds.await_phase("ends", "Running")

    stall(full_sandbox, "controllers")

    worlds.await_phase("ends", "Succeeded")
    job = worlds.await_accounted(uid, _ONE_LEASE_AND_ONE_START_S)
    assert "COMPLETED" == job.state
    await_livez(full_sandbox, "controllers")
