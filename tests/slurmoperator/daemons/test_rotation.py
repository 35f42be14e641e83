"""The key of Slurm's daemons is replaced while they run, whatever fails and whoever dies meanwhile."""

import base64
import copy
from typing import Any

import pytest

from slurmoperator.keys import rings
from tests.make.trouble import Dead, Fault, Trouble, dying, first_and_last
from tests.slurmoperator.daemons.daemons import KEY, RING, WORKER, WithPods, steps_of, workers
from tests.slurmoperator.daemons.peers import PASSWORD, Leaders, controller, part, secret
from tests.virtual_time import VirtualClock, run

pytestmark = pytest.mark.slow

CONDITION = "SlurmKeyRotated"
IN_FORCE = ("True", "InForce", "every daemon uses key 2")
ROTATES_S = 200.0
"""Three steps, in each of which all pods are replaced one after the other."""
ELSEWHERE = {"external": True, "externalConfig": {"host": "db.example.org", "port": 6819}}
SSSD = secret("site-sssd", sssd_conf=b"[sssd]")


def pods_of(leaders: Leaders) -> WithPods:
    assert isinstance(leaders.api, WithPods)
    return leaders.api


def small(clock: VirtualClock, trouble: Trouble | None = None) -> Leaders:
    """A Slurm with one of each that the operator sees to in its own way."""
    leaders = Leaders(clock, trouble, api=WithPods)
    for each in (controller(), part("RestApi"), workers()):
        leaders.api.put(each)
    return leaders


def whole(clock: VirtualClock) -> Leaders:
    leaders = Leaders(clock, api=WithPods)
    for each in (
        PASSWORD,
        SSSD,
        part("Accounting"),
        part("Controller", prologScriptRefs=...),
        part("RestApi"),
        part("LoginSet"),
        workers(),
    ):
        leaders.api.put(each)
    return leaders


def step(leaders: Leaders) -> int:
    """The one that the Controller was told."""
    return int(leaders.api.of("Controller")["site"]["status"].get("slurmKeyStep", 0))


def ring(leaders: Leaders) -> dict[str, str]:
    return dict(leaders.api.of("Secret").get(RING, {}).get("data", {}))


def templates(leaders: Leaders) -> dict[str, Any]:
    return {
        name: copy.deepcopy(each["spec"]["template"])
        for kind in ("StatefulSet", "Deployment")
        for name, each in leaders.api.of(kind).items()
    }


def check_rotated(leaders: Leaders, *, to: int = 3) -> None:
    api = pods_of(leaders)
    assert IN_FORCE == leaders.api.condition("Controller", CONDITION)
    assert "True" == leaders.api.condition("Controller", "Ready")[0]
    assert {rings.ring_item(KEY.key, each) for each in (to - 1, to)} == ring(leaders).keys()
    assert to == step(leaders)
    assert {(to,)} == {tuple(steps_of(pod)) for pod in api.pods.values()}
    assert [*range(to + 1)] == api.seen, "a worker was replaced more often than it takes"


def test_all_daemons_come_to_another_key_and_nothing_is_written_twice() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = whole(clock)
        await leaders.lead()
        api = pods_of(leaders)
        assert {*api.pods} == {
            "statefulset-site-controller",
            "statefulset-site-accounting",
            "deployment-site-restapi",
            "deployment-site",
            WORKER,
        }
        assert not ring(leaders)
        conditions = api.of("Controller")["site"]["status"]["conditions"]
        assert CONDITION not in [condition["type"] for condition in conditions]

        api.mark(2)
        await leaders.lead(for_s=ROTATES_S)
        check_rotated(leaders)
        for template in templates(leaders).values():
            assert RING in str(template)
            assert "slurm.jwks" in str(template)
            assert "slurm.key'" not in str(template), "the first key is still mounted"

        count = len(leaders.trouble.writes)
        await leaders.lead()
        assert [] == leaders.trouble.writes[count:]

    run(main)


def test_a_second_time_it_comes_to_a_third_key() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = small(clock)
        for number in (2, 3):
            await leaders.lead()
            pods_of(leaders).mark(number)
            await leaders.lead(for_s=ROTATES_S)
        assert 6 == step(leaders)
        assert ("True", "InForce", "every daemon uses key 3") == leaders.api.condition(
            "Controller", CONDITION
        )
        assert {(6,)} == {tuple(steps_of(pod)) for pod in leaders.api.pods.values()}

    run(main)


@pytest.mark.parametrize("blocked_at", [0, 1, 2])
def test_a_worker_with_a_job_holds_the_step_and_is_named(blocked_at: int) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = small(clock)
        api = pods_of(leaders)
        await leaders.lead()

        def gets_busy() -> None:
            if step(leaders) == blocked_at:
                api.is_busy = True

        api.mark(2)
        for _ in range(40):
            gets_busy()
            await leaders.lead(for_s=10)
        assert api.is_busy
        assert blocked_at + 1 == step(leaders)
        status, reason, message = leaders.api.condition("Controller", CONDITION)
        assert ("False", "Waiting") == (status, reason)
        assert message.endswith(f"waiting for pod {WORKER}")

        api.is_busy = False
        await leaders.lead(for_s=ROTATES_S)
        check_rotated(leaders)

    run(main)


def test_a_pod_of_somebody_else_with_the_key_holds_the_step() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = small(clock)
        api = pods_of(leaders)
        await leaders.lead()
        volume = {"name": "key", "secret": {"secretName": KEY.name}}
        api.start("theirs", {"volumes": [volume]})
        api.mark(2)
        await leaders.lead(for_s=ROTATES_S)
        assert 1 == step(leaders)
        assert leaders.api.condition("Controller", CONDITION)[2].endswith("pod theirs")

        ended = {**copy.deepcopy(api.pods["theirs"]), "status": {"phase": "Succeeded"}}
        api.create(ended)
        await leaders.lead(for_s=ROTATES_S)
        assert 3 == step(leaders)

    run(main)


def test_what_runs_elsewhere_keeps_the_key_from_being_replaced() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = Leaders(clock, api=WithPods)
        known = secret(KEY.name, slurm_key=b"k" * 64)
        jwt = secret("site-auth-jwt", jwt_key=b"k" * 64)
        accounting = part("Accounting", **ELSEWHERE)
        for each in (known, jwt, accounting, part("Controller", prologScriptRefs=...)):
            leaders.api.put(each)
        await leaders.lead()
        pods_of(leaders).mark(2)
        await leaders.lead(for_s=ROTATES_S)
        status, reason, message = leaders.api.condition("Controller", CONDITION)
        assert ("False", "Elsewhere") == (status, reason)
        assert "would cut off Accounting site: external daemons" in message
        assert not ring(leaders)
        assert "True" == leaders.api.condition("Controller", "Ready")[0]

    run(main)


@pytest.mark.parametrize("said", ["0", "two", "3", "-1", ""])
def test_a_number_that_is_none_of_a_next_key_is_told_and_costs_nothing(said: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = small(clock)
        await leaders.lead()
        pods_of(leaders).annotate(slurm_key_number=said)
        await leaders.lead()
        status, reason, message = leaders.api.condition("Controller", CONDITION)
        assert ("False", "BadInput") == (status, reason)
        assert "metadata.annotations[slurm-bridge.dev/slurm-key-number]: expected" in message
        assert not ring(leaders)
        assert "True" == leaders.api.condition("Controller", "Ready")[0]

        pods_of(leaders).annotate()
        await leaders.lead()
        conditions = leaders.api.of("Controller")["site"]["status"]["conditions"]
        assert CONDITION not in [condition["type"] for condition in conditions]

    run(main)


def test_a_secret_of_that_name_with_other_contents_is_left_alone() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = small(clock)
        theirs = secret(RING, mine=b"theirs")
        leaders.api.put(theirs)
        await leaders.lead()
        pods_of(leaders).mark(2)
        await leaders.lead()
        assert theirs["data"] == leaders.api.of("Secret")[RING]["data"]
        status, reason, message = leaders.api.condition("Controller", CONDITION)
        assert ("False", "Failing") == (status, reason)
        assert f"Secret {RING}: it has mine" in message

    run(main)


async def rotated(clock: VirtualClock) -> Leaders:
    leaders = small(clock)
    await leaders.lead()
    pods_of(leaders).mark(2)
    await leaders.lead(for_s=ROTATES_S)
    check_rotated(leaders)
    return leaders


@pytest.mark.parametrize("damage", ["gone", "other"])
def test_a_lost_ring_is_told_and_nobody_gets_another_key(damage: str) -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await rotated(clock)
        before, kept = templates(leaders), copy.deepcopy(leaders.api.of("Secret")[RING])
        leaders.api.remove("Secret", RING)
        if damage == "other":
            item = rings.ring_item(KEY.key, 3)
            leaders.api.put({**kept, "data": {item: kept["data"][rings.ring_item(KEY.key, 2)]}})
        pods_of(leaders).written.clear()
        await leaders.lead()
        for kind in ("Controller", "RestApi"):
            status, reason, message = leaders.api.condition(kind, "Accepted")
            assert ("False", "BadInput") == (status, reason)
            assert f"Secret {RING}: " in message
            assert "restore it" in message
        assert before == templates(leaders)
        assert 3 == step(leaders)

        if damage == "other":
            leaders.api.remove("Secret", RING)
        pods_of(leaders).written.clear()
        leaders.api.put(kept)
        await leaders.lead()
        check_rotated(leaders)

    run(main)


def test_the_first_key_is_needed_no_more() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await rotated(clock)
        leaders.api.remove("Secret", KEY.name)
        await leaders.lead()
        assert KEY.name not in leaders.api.of("Secret")
        assert "True" == leaders.api.condition("Controller", "Accepted")[0]
        check_rotated(leaders)

    run(main)


def test_a_status_that_was_lost_comes_back_from_the_ring() -> None:
    async def main(clock: VirtualClock) -> None:
        leaders = await rotated(clock)
        before = templates(leaders)
        leaders.api.remove("NodeSet", "site")
        leaders.api.put({**copy.deepcopy(leaders.api.of("Controller")["site"]), "status": {}})
        await leaders.lead()
        assert 3 == step(leaders)
        assert before == templates(leaders)

    run(main)


# -- whatever fails --------------------------------------------------------------------------------


async def goes_on(leaders: Leaders, for_s: float) -> None:
    """A leader that died is followed by another one."""
    try:
        await leaders.lead(for_s=for_s)
    except* Dead:
        await leaders.lead(for_s=for_s)


async def whole_rotation(leaders: Leaders) -> int:
    """From the first key to the second; return after how many writes it began."""
    await goes_on(leaders, 200.0)
    before = len(leaders.trouble.writes)
    pods_of(leaders).mark(2)
    await goes_on(leaders, ROTATES_S)
    check_rotated(leaders)
    second, third = (
        rings.keys_of(each, decoded(ring(leaders)[rings.ring_item(KEY.key, each)]))
        for each in (2, 3)
    )
    assert second is not None
    assert third is not None
    assert second[2] == third[2]
    return before


def decoded(text: str) -> bytes:
    return base64.b64decode(text)


@pytest.mark.parametrize("fault", Fault)
def test_whatever_write_fails_all_come_to_one_key(fault: Fault) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = small(clock)
        before = await whole_rotation(calm)
        assert 9 <= len(calm.trouble.writes) - before <= 90
        for at in range(before + 1, len(calm.trouble.writes) + 1):
            await whole_rotation(small(clock, Trouble(fault, at=at)))

    run(main)


def test_whatever_read_fails_all_come_to_one_key() -> None:
    async def main(clock: VirtualClock) -> None:
        calm = small(clock)
        await whole_rotation(calm)
        for at in first_and_last(calm.trouble.reads):
            await whole_rotation(small(clock, Trouble(at_read=at)))

    run(main)


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
def test_a_leader_may_die_at_any_write_of_a_rotation(*, is_done: bool) -> None:
    async def main(clock: VirtualClock) -> None:
        calm = small(clock)
        before = await whole_rotation(calm)
        for at in range(before + 1, len(calm.trouble.writes) + 1):
            leaders = small(clock)
            died = dying(leaders.trouble, at, is_done=is_done)
            await whole_rotation(leaders)
            assert died, "there is a write at which it did not die"

    run(main)
