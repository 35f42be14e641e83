"""Which collector is due: every case, and what holds whatever happens."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmjobs.companions import collecting, pod
from slurmjobs.companions.collecting import CollectFacts, Collector, CollectStep
from slurmjobs.companions.due import Account
from slurmjobs.lifecycle.situation import CopyState
from slurmjobs.objects.results import JobResult, ResultTarget
from slurmjobs.objects.slurmjob import SlurmJobObject
from slurmruntime.values.ids import JobId
from tests.slurmjobs.companions.outputs import ALICE, collecting_job
from tests.slurmjobs.lifecycle.situations import NOW, batch_job


def ended(source: str = "model.bin", **status: Any) -> SlurmJobObject:
    return collecting_job(source, **status)


def one(number: int = 1, **changes: Any) -> Collector:
    return replace(Collector(run="7-0", number=number), **changes)


def over(number: int, code: int | None, said: str = "") -> Collector:
    return one(number, is_over=True, exit_code=code, message=said, ended_at=NOW)


def decide(
    *there: Collector, later: timedelta = timedelta(), trouble: str = "", **status: Any
) -> CollectStep:
    facts = CollectFacts(job=ended(**status), collectors=there, now=NOW + later, refusal=trouble)
    return collecting.decide(facts)


MINUTES = timedelta(minutes=5)


@pytest.mark.parametrize(
    ("there", "number"),
    [
        pytest.param((), 1, id="the first"),
        pytest.param((over(1, 75),), 2, id="again"),
        pytest.param((over(1, None),), 2, id="it was evicted before it ran"),
        pytest.param((over(1, 137), over(2, 75)), 3, id="for the last time"),
    ],
)
def test_one_is_made(there: tuple[Collector, ...], number: int) -> None:
    step = decide(*there, later=MINUTES)

    assert (CopyState.NOT_YET, number) == (step.collection.state, step.make)


def test_the_next_try_waits_longer_each_time() -> None:
    second, third = decide(over(1, 75)), decide(over(1, 75), over(2, 75))

    assert (0, 0) == (second.make, third.make)
    assert (collecting.BETWEEN, 2 * collecting.BETWEEN) == (second.retry_after, third.retry_after)


@pytest.mark.parametrize(
    ("there", "state", "text"),
    [
        pytest.param((over(1, 0),), CopyState.DONE, "", id="done"),
        pytest.param((over(1, 75), over(2, 0)), CopyState.DONE, "", id="done at last"),
        pytest.param((one(message="no node"),), CopyState.NOT_YET, "no node", id="it waits"),
        pytest.param((over(1, 75, "full"), one(2, message="no node")), CopyState.NOT_YET, "no node; try 1 failed: full", id="again"),
        pytest.param((over(1, 1, "no such file"),), CopyState.GIVEN_UP, "no such file", id="hopeless"),
        pytest.param((over(3, 75, "full"),), CopyState.GIVEN_UP, "3 tries failed; the last one: full", id="often enough"),
    ],
)  # fmt: skip
def test_how_it_stands(there: tuple[Collector, ...], state: CopyState, text: str) -> None:
    step = decide(*there, later=MINUTES)

    assert (0, state, text) == (step.make, step.collection.state, step.collection.text)


def test_why_none_could_be_made_is_told() -> None:
    assert "quota" == decide(trouble="quota").collection.text


def test_a_day_is_all_it_gets() -> None:
    step = decide(one(message="unbound claim"), later=collecting.WITHIN)

    assert (CopyState.GIVEN_UP, 0) == (step.collection.state, step.make)
    assert "within a day of the job's end: unbound claim" in step.collection.text


def test_those_of_an_earlier_run_go_first() -> None:
    earlier = one(is_over=True, exit_code=0)
    step = decide(earlier, restarts=1)

    assert (0, (earlier,)) == (step.make, step.remove)
    assert CopyState.NOT_YET is step.collection.state


@given(
    st.lists(
        st.builds(
            one,
            st.integers(1, 3),
            run=st.sampled_from(["7-0", "7-1", "6-0"]),
            is_over=st.booleans(),
            exit_code=st.sampled_from([None, 0, 1, 75, 137]),
            ended_at=st.sampled_from([None, NOW]),
        ),
        max_size=4,
    ),
    st.integers(0, 100_000),
)
def test_it_ends_after_three_tries_whatever_they_do(there: list[Collector], later_s: int) -> None:
    """Making what is due leads to an answer, and a name is never used twice."""
    for _ in range(5):
        step = decide(*there, later=timedelta(seconds=later_s))
        there = [each for each in there if each not in step.remove]
        if step.make:
            assert step.make not in {each.number for each in there}
            there.append(over(step.make, 75))
        later_s += 100
        if step.collection.state is not CopyState.NOT_YET:
            return
    assert any(not each.is_over for each in there), "it waits for nothing"


@pytest.mark.parametrize(
    ("source", "path"),
    [
        ("model.bin", "alice/model.bin"),
        ("./out/", "alice/out"),
        ("/scratch/shared/x", "shared/x"),
        ("run-%j/%x-%u", "alice/run-7/train-alice"),
        ("/home/alice/x", None),
        ("/scratch", None),
        ("../bob/x", None),
    ],
)
def test_where_a_result_lies(source: str, path: str | None) -> None:
    found = ended(source)

    assert path == collecting.source(found, found.spec.results[0])
    step = collecting.decide(CollectFacts(job=found, collectors=(), now=NOW))
    assert (path is None) == (step.collection.state is CopyState.GIVEN_UP)
    if path is None:
        assert f"spec.results[0].from: {source} is not below /scratch" in step.collection.text


def test_whose_it_is_stays_known_when_slurm_has_forgotten_the_job() -> None:
    live = [batch_job(id=JobId(7), uid=1, gid=2), batch_job(id=JobId(8), uid=3, gid=4)]
    told, copier = ended(uid=5, gid=6), one(account=Account(uid=7, gid=8))

    assert Account(uid=1, gid=2) == collecting.account_of(told, live, [copier])
    assert Account(uid=5, gid=6) == collecting.account_of(told, [], [copier])
    assert Account(uid=7, gid=8) == collecting.account_of(ended(), [], [copier])
    assert None is collecting.account_of(ended(), [], [])


def test_a_collector_reads_one_claim_and_writes_the_others() -> None:
    found = collecting_job("a $(HOME)", "b")
    made = pod.collector(found, ALICE, "images.example.test/bridge:1", number=2, seconds=60)
    spec, meta = made["spec"], made["metadata"]
    (container,) = spec["containers"]

    assert ("train-collect-2", {"slurm-bridge.dev/follows": "7-0"}) == (
        meta["name"],
        meta["annotations"],
    )
    assert 60 == spec["activeDeadlineSeconds"]
    order = (
        '[["/volume/alice/a $$(HOME)", "/results/0/run"], ["/volume/alice/b", "/results/0/run"]]'
    )
    assert [".slurm-bridge-5b1c", order] == container["command"][-2:]
    claims = {
        volume["persistentVolumeClaim"]["claimName"]: volume["persistentVolumeClaim"].get(
            "readOnly"
        )
        for volume in spec["volumes"]
    }
    assert {"scratch": True, "models": None} == claims
    assert {"/volume": True, "/results/0": None} == {
        volume_mount["mountPath"]: volume_mount.get("readOnly")
        for volume_mount in container["volumeMounts"]
    }


def test_a_claim_that_is_read_and_written_is_mounted_as_one_volume() -> None:
    found = ended()
    results = (JobResult(source="a", to=ResultTarget(claim_name="scratch", path="kept")),)
    found = msgspec.structs.replace(
        found, spec=msgspec.structs.replace(found.spec, results=results)
    )
    spec = pod.collector(found, ALICE, "image", number=1, seconds=60)["spec"]

    (volume,) = spec["volumes"]
    assert {"claimName": "scratch"} == volume["persistentVolumeClaim"]
    assert [True, None] == [
        volume_mount.get("readOnly") for volume_mount in spec["containers"][0]["volumeMounts"]
    ]


@pytest.mark.parametrize("account", [Account(uid=0, gid=1), Account(uid=1, gid=-1)])
def test_root_gets_none(account: Account) -> None:
    with pytest.raises(ValueError, match="can have no collector"):
        pod.collector(ended(), account, "image", number=1, seconds=60)
