"""What the soak of devices takes for a breach."""

from collections.abc import Sequence

import pytest

from tests.soak.devices import hands, lives
from tests.soak.devices.hands import Held
from tests.soak.devices.lives import DeviceLife, Fate, Kind


def life(end: str, kind: Kind = Kind.POD, fate: Fate = Fate.ENDS, devices: int = 2) -> DeviceLife:
    return DeviceLife("a", kind, fate, devices, 1.0, end=end)


def found(one: DeviceLife, *held: str, twice: Sequence[str] = (), cpus: str = "0-1") -> list[str]:
    there = [hands.read(line) for line in held or ("a 0-1 device-00 device-03",)]
    return list(lives.breaches([one], {"n": there}, {"n": twice}, cpus))


def test_a_line_of_the_log_names_processors_and_devices() -> None:
    assert Held("a", "0-1", ("device-00",)) == hands.read("a 0-1 device-00 ")
    assert Held("a", "0", ()) == hands.read("a 0")


@pytest.mark.parametrize(
    "one",
    [
        life("COMPLETED 0:0"),
        life("FAILED 3:0", fate=Fate.EXITS),
        life("PREEMPTED"),
        life("CANCELLED", fate=Fate.IS_CANCELLED),
        life("COMPLETED 0:0", Kind.JOB),
        life("FAILED 3:0", Kind.URGENT, Fate.EXITS),
        life("PREEMPTED", Kind.JOB),
    ],
)
def test_who_ends_as_it_was_meant_or_is_preempted_is_right(one: DeviceLife) -> None:
    assert not found(one)


@pytest.mark.parametrize(
    ("one", "held", "expected"),
    [
        (life(""), (), "lost"),
        (life("FAILED 1:0"), (), "ended as FAILED 1:0"),
        (life("PREEMPTED", Kind.URGENT), (), "ended as PREEMPTED"),
        (life("NODE_FAIL 0:0", Kind.JOB), (), "ended as NODE_FAIL"),
        (life("CANCELLED"), (), "ended as CANCELLED"),
        (life("COMPLETED 0:0"), ("a 0-1 device-00",), "wanted 2"),
        (life("COMPLETED 0:0"), ("a 0-1 device-00 device-00",), "wanted 2"),
        (life("COMPLETED 0:0"), ("a 1 device-00 device-01",), "processors 1 only"),
        (life("COMPLETED 0:0"), ("b 0-1 device-00",), "none of ours"),
        (life("COMPLETED 0:0"), ("a 0-1 d e",) * 2, "began 2 times"),
    ],
)
def test_everything_else_is_a_breach(one: DeviceLife, held: Sequence[str], expected: str) -> None:
    assert any(expected in each for each in found(one, *held))


def test_a_device_in_two_hands_is_a_breach() -> None:
    (breach,) = found(life("COMPLETED 0:0"), twice=["a device-00 1 b"])
    assert "a device-00 1 b: in two hands" in breach


def test_who_never_held_a_device_did_not_end_well() -> None:
    (breach,) = lives.breaches([life("COMPLETED 0:0")], {"n": ()}, {"n": ()}, "0-1")
    assert "never held" in breach


def test_what_slurm_ends_has_no_exit_code() -> None:
    assert "CANCELLED" == lives.end_of("CANCELLED by 0", "0:15")
    assert "PREEMPTED" == lives.end_of("PREEMPTED", "0:0")
    assert "FAILED 3:0" == lives.end_of("FAILED", "3:0")


def test_slurmctld_tells_of_preempted_jobs_that_its_accounts_call_cancelled() -> None:
    log = """\
[2026-11-24T14:08:48.030] sched: Allocate JobId=542 NodeList=real-3 #CPUs=1 Partition=slurm-bridge
[2026-11-24T14:08:49.931] preempted JobId=542 has been killed to reclaim resources for JobId=557
"""
    assert {"542"} == lives.preempted(log)
    assert "PREEMPTED" == lives.end_of("CANCELLED by 0", "0:0", is_preempted=True)
    assert "FAILED 3:0" == lives.end_of("FAILED", "3:0", is_preempted=True)


def test_the_same_seed_draws_the_same_lives_of_every_kind() -> None:
    drawn = lives.draw(1, 200)

    assert drawn == lives.draw(1, 200) != lives.draw(2, 200)
    assert set(Kind) == {each.kind for each in drawn}
    assert set(Fate) == {each.fate for each in drawn}
    assert {1, 2, 3, 4} == {each.devices for each in drawn}
