"""Coscheduling's PodGroups, beside their real controller, which counts the same pods."""

from typing import Any

from tests.workloads.kinds import COSCHEDULING_GROUP, POD_GROUPS, Kinds, outcomes, template


def key(kinds: Kinds, name: str) -> str:
    return f"PodGroup.scheduling.x-k8s.io/{kinds.worlds.namespace}/{name}"


def submit(kinds: Kinds, group: str, names: list[str], **play: Any) -> None:
    for name in names:
        pod = template(labels={COSCHEDULING_GROUP: group}, **play)
        pod["metadata"]["name"] = name
        kinds.api.create(f"{kinds.worlds.path}/pods", pod)


def test_a_group_starts_together_when_enough_are_there(kinds: Kinds) -> None:
    kinds.create(POD_GROUPS, "ring", {"minMember": 4})
    submit(kinds, "ring", ["m-0", "m-1", "m-2"], cpus="4", seconds=5)
    alone = kinds.worlds.submit("alone", annotations={})
    kinds.worlds.await_phase("alone", "Running")
    assert [] == kinds.worlds.jobs(key(kinds, "ring"))
    assert 1 == len(kinds.worlds.live(alone))

    submit(kinds, "ring", ["m-3"], cpus="4", seconds=5)

    gang = kinds.await_gang(f"{COSCHEDULING_GROUP}=ring", 4, key(kinds, "ring"))
    assert "ring" == gang.name
    assert ["m-0", "m-1", "m-2", "m-3"] == gang.members
    assert [("COMPLETED", "0:0")] == outcomes(kinds.ended(key(kinds, "ring")))
    kinds.until(lambda: kinds.get(POD_GROUPS, "ring")["status"]["phase"] == "Finished")


def test_a_group_that_is_deleted_ends_its_job(kinds: Kinds) -> None:
    kinds.create(POD_GROUPS, "unwanted", {"minMember": 2})
    submit(kinds, "unwanted", ["a", "b"])
    kinds.await_gang(f"{COSCHEDULING_GROUP}=unwanted", 2, key(kinds, "unwanted"))

    for name in ("a", "b"):
        kinds.worlds.delete(name)

    assert [("CANCELLED", "0:0")] == outcomes(kinds.ended(key(kinds, "unwanted")))
    kinds.await_none(f"{COSCHEDULING_GROUP}=unwanted")


def test_a_member_too_many_gets_a_job_of_its_own(kinds: Kinds) -> None:
    kinds.create(POD_GROUPS, "full", {"minMember": 2})
    submit(kinds, "full", ["a", "b"])
    gang = kinds.await_gang(f"{COSCHEDULING_GROUP}=full", 2, key(kinds, "full"))

    submit(kinds, "full", ["c"])

    kinds.await_running(f"{COSCHEDULING_GROUP}=full", 3)
    late = kinds.worlds.pod("c")
    assert late is not None
    (own,) = kinds.worlds.live(late["metadata"]["uid"])
    assert own.id != gang.job.id
