"""A slurmctld that has only reset its counters is the same one; everything else may be another."""

import json
from typing import Any

import msgspec
import pytest

from slurmclient.errors import Declined, SlurmError, TooOld, Unavailable
from slurmclient.watching.slurmctld import Incarnation

ONE = ({"hostname": "a"},)
TWO = ({"hostname": "a"}, {"hostname": "b"})


class Conf:
    """What `conf` answers."""

    def __init__(self, booted_at: int = 100, *, hosts: tuple[Any, ...] = ONE) -> None:
        self.booted_at = booted_at
        self.hosts = hosts
        self.error: SlurmError | None = None
        self.asked = 0

    async def call(self, operation: str, *_: object, answer: Any) -> Any:
        assert operation == "conf"
        self.asked += 1
        if self.error:
            raise self.error
        body = {
            "slurm_conf": {"controllers": self.hosts},
            "slurm_conf_meta": {"BOOT_TIME": self.booted_at},
        }
        return msgspec.json.decode(json.dumps(body).encode(), type=answer)


async def known(conf: Conf) -> Incarnation:
    incarnation = Incarnation()
    assert await incarnation.may_be_another(conf, 100)  # type: ignore[arg-type]  # all that is asked of it
    return incarnation


async def is_another(incarnation: Incarnation, conf: Conf, counts_since: int) -> bool:
    return await incarnation.may_be_another(conf, counts_since)  # type: ignore[arg-type]  # as above


async def test_while_it_counts_on_it_is_the_same_and_nothing_is_asked() -> None:
    conf = Conf()
    incarnation = await known(conf)

    assert not await is_another(incarnation, conf, 100)
    assert 1 == conf.asked


async def test_at_midnight_it_is_the_same_and_stays_so() -> None:
    conf = Conf()
    incarnation = await known(conf)

    assert [False, False] == [await is_another(incarnation, conf, since) for since in (200, 200)]
    assert 2 == conf.asked


async def test_a_restart_is_noticed_even_right_after_midnight() -> None:
    conf = Conf()
    incarnation = await known(conf)
    await is_another(incarnation, conf, 200)
    conf.booted_at = 201

    assert await is_another(incarnation, conf, 201)
    assert not await is_another(incarnation, conf, 201)


async def test_in_its_first_second_it_may_be_any_and_so_may_the_one_after_it() -> None:
    conf = Conf()
    incarnation = await known(conf)

    assert [True, True, True] == [await is_another(incarnation, conf, s) for s in (0, 0, 100)]


@pytest.mark.parametrize(
    "error",
    [TooOld("conf", ""), Declined("conf", "", error_number=0), Unavailable("conf", "")],
    ids=lambda error: type(error).__name__,
)
async def test_where_the_boot_time_is_not_told_a_reset_counts_as_a_restart(
    error: SlurmError,
) -> None:
    conf = Conf()
    conf.error = error
    incarnation = await known(conf)

    assert await is_another(incarnation, conf, 200)


async def test_one_lost_answer_makes_one_restart_and_no_second_one() -> None:
    conf = Conf()
    incarnation = await known(conf)
    conf.error = Unavailable("conf", "")
    assert await is_another(incarnation, conf, 200)
    conf.error = None

    assert await is_another(incarnation, conf, 300), "what had booted at 200 was not told"
    assert not await is_another(incarnation, conf, 400)


@pytest.mark.parametrize("hosts", [(), TWO], ids=["no host", "a backup"])
async def test_with_a_backup_the_boot_time_proves_nothing(hosts: tuple[Any, ...]) -> None:
    conf = Conf(hosts=hosts)
    incarnation = await known(conf)

    assert await is_another(incarnation, conf, 200)


async def test_a_boot_time_of_zero_is_none() -> None:
    conf = Conf(booted_at=0)
    incarnation = await known(conf)

    assert await is_another(incarnation, conf, 200)
