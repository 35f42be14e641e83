"""LeaderWorkerSets, by the real controller: one gang for each group."""

from typing import Any

import pytest

from tests.workloads.kinds import (
    LEADER_WORKER_SETS,
    LWS_GROUP,
    LWS_NAME,
    RACK,
    Kinds,
    outcomes,
    template,
)

EXCLUSIVE = "leaderworkerset.sigs.k8s.io/exclusive-topology"


def of(name: str, group: int) -> str:
    return f"{LWS_NAME}={name},{LWS_GROUP}={group}"


def key(kinds: Kinds, name: str, group: int) -> str:
    return f"LeaderWorkerSet/{kinds.worlds.namespace}/{name}/{group}"


def create(
    kinds: Kinds,
    name: str,
    *,
    replicas: int = 1,
    size: int = 3,
    startup: str = "LeaderCreated",
    cpus: str = "1",
    annotations: dict[str, str] | None = None,
    **play: Any,
) -> None:
    spec = {
        "replicas": replicas,
        "startupPolicy": startup,
        "leaderWorkerTemplate": {
            "size": size,
            "workerTemplate": template(cpus=cpus, restart="Always", **play),
        },
    }
    kinds.create(LEADER_WORKER_SETS, name, spec, annotations=annotations)


def test_each_group_is_a_gang_and_ends_with_the_set(kinds: Kinds) -> None:
    create(kinds, "serve", replicas=2, cpus="4")

    groups = [kinds.await_gang(of("serve", g), 3, key(kinds, "serve", g)) for g in (0, 1)]

    assert ["serve-0", "serve-1"] == [group.name for group in groups]
    for number, group in enumerate(groups):
        expected = [f"serve-{number}", f"serve-{number}-1", f"serve-{number}-2"]
        assert expected == group.members
    kinds.delete(LEADER_WORKER_SETS, "serve")
    kinds.await_none(f"{LWS_NAME}=serve")
    for number in (0, 1):
        assert [("CANCELLED", "0:0")] == outcomes(kinds.ended(key(kinds, "serve", number)))


def test_workers_that_wait_for_their_leader_find_their_slots(kinds: Kinds) -> None:
    """Slurm is asked for the whole group while only the leader exists: one job all along."""
    create(kinds, "patient", startup="LeaderReady")

    group = kinds.await_gang(of("patient", 0), 3, key(kinds, "patient", 0))

    assert ["patient-0", "patient-0-1", "patient-0-2"] == group.members
    assert 1 == len(kinds.worlds.jobs(key(kinds, "patient", 0)))


def test_a_group_gets_nodes_of_one_rack(kinds: Kinds) -> None:
    """Its controller ties the workers to the leader's rack, so Slurm is asked for one: not for the first free nodes."""
    with kinds.worlds.strangers_on("node-0"):
        create(kinds, "racked", cpus="4", annotations={EXCLUSIVE: RACK})
        group = kinds.await_gang(of("racked", 0), 3, key(kinds, "racked", 0))

    assert {"rack-1"} == kinds.racks(group)


@pytest.mark.parametrize("how", ["deleted", "restarted", "failed"])
def test_a_group_restarts_as_a_new_gang(kinds: Kinds, how: str) -> None:
    """Every finalizer of the group has to go for that; the other group notices nothing."""
    create(kinds, "again", replicas=2)
    old = [kinds.await_gang(of("again", g), 3, key(kinds, "again", g)) for g in (0, 1)]
    worker = old[0].pods[2]

    if how == "deleted":
        kinds.worlds.delete(worker["metadata"]["name"])
    elif how == "restarted":
        kinds.restart(worker)
    else:
        kinds.end(worker, exit_code=1)

    kinds.until(lambda: old[0].uids.isdisjoint(kinds.uids(of("again", 0))))
    new = kinds.await_gang(of("again", 0), 3, key(kinds, "again", 0))
    assert old[0].job.id != new.job.id
    assert old[0].members == new.members
    (ended,) = [job for job in kinds.worlds.accounted(key(kinds, "again", 0)) if not job.is_live]
    assert old[0].job.id == ended.id
    # Its StatefulSet may have replaced the one that failed before all were deleted: then that counts no more.
    assert ended.state in {"CANCELLED", "FAILED" if how == "failed" else "CANCELLED"}
    other = kinds.await_gang(of("again", 1), 3, key(kinds, "again", 1))
    assert (old[1].job.id, old[1].uids) == (other.job.id, other.uids)


def test_a_set_that_shrinks_gives_a_groups_nodes_back(kinds: Kinds) -> None:
    create(kinds, "fewer", replicas=2)
    kept, given = (kinds.await_gang(of("fewer", g), 3, key(kinds, "fewer", g)) for g in (0, 1))

    kinds.patch(LEADER_WORKER_SETS, "fewer", {"replicas": 1})

    kinds.await_none(of("fewer", 1))
    assert [given.job.id] == [job.id for job in kinds.ended(key(kinds, "fewer", 1))]
    assert [kept.job.id] == [job.id for job in kinds.worlds.live(key(kinds, "fewer", 0))]


def test_a_group_that_waits_can_be_deleted(kinds: Kinds) -> None:
    with kinds.worlds.strangers_on("node-0", "node-1", "node-2", "node-3"):
        create(kinds, "waiting")
        kinds.worlds.await_live(key(kinds, "waiting", 0), lambda job: job.state == "PENDING")
        kinds.delete(LEADER_WORKER_SETS, "waiting")
        kinds.await_none(f"{LWS_NAME}=waiting")
        assert ["CANCELLED"] == [job.state for job in kinds.ended(key(kinds, "waiting", 0))]
