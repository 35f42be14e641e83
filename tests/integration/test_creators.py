"""Who pays for what a controller made: the creator of its owner, if the cluster records creators."""

from collections.abc import Iterator
from typing import Any

import pytest

from slurmruntime.values import names
from tests.integration.creators import (
    ALICE,
    CREATOR,
    CRONJOBS,
    Tenants,
    creators_recorded,
    make_job,
    owner,
    pod_of,
    policy,
)
from tests.integration.policed import PATIENCE_S
from tests.integration.worlds import container
from tests.servers import wait_until

pytestmark = pytest.mark.usefixtures("room")


@pytest.fixture
def recorded(tenants: Tenants) -> Iterator[None]:
    """The rule by groups does not hold: what is recorded of a creator is the name alone."""
    whole = policy(tenants.physics.namespace)
    tenants.files.put({**whole, "creator_annotation": CREATOR, "rules": whole["rules"][1:]})
    yield
    tenants.files.put(whole)


@pytest.mark.usefixtures("recorded")
def test_a_controllers_pod_is_its_owners_creators(tenants: Tenants) -> None:
    """Where the cluster records creators, as this cluster's administrator plays here."""
    physics = tenants.physics
    make_job(physics, "hers", tenants.alice, annotations={CREATOR: ALICE})
    make_job(physics, "anyones", tenants.alice)

    hers, anyones = (pod_of(physics, name)["metadata"] for name in ("hers", "anyones"))

    assert hers["annotations"][names.REQUESTER_ANNOTATION].endswith(":job-controller")
    assert "physics|alice|alice" == owner(tenants.sandbox, hers["uid"], physics)
    assert "kubernetes|kubernetes|kubernetes" == owner(tenants.sandbox, anyones["uid"], physics)


@pytest.mark.attack(
    "claim somebody's owner, and with it its creator, at CREATE",
    "the owner's uid, and who may be its controller, are checked",
)
@pytest.mark.usefixtures("recorded")
def test_nobody_is_somebody_else_by_writing_owners(tenants: Tenants) -> None:
    """A Job of Mallory's that says that one of Alice's owns it makes pods of Mallory's."""
    physics = tenants.physics
    uid = make_job(physics, "victim", tenants.alice, annotations={CREATOR: ALICE})
    victim = {"apiVersion": "batch/v1", "kind": "Job", "name": "victim", "uid": uid}
    make_job(
        physics,
        "forged",
        tenants.alice,
        annotations={CREATOR: "mallory"},
        ownerReferences=[{**victim, "controller": True}],
    )

    forged = pod_of(physics, "forged")["metadata"]["uid"]

    assert "kubernetes|kubernetes|kubernetes" == owner(tenants.sandbox, forged, physics)


@pytest.mark.attack(
    "become somebody by giving a controller's Job to that person's CronJob later",
    "only owners recorded at CREATE count",
)
@pytest.mark.usefixtures("recorded")
def test_nobody_is_somebody_else_by_editing_the_owners_of_a_controllers_job(
    tenants: Tenants,
) -> None:
    """A Job that its CronJob's controller made is Mallory's to edit: here she gave it to Alice's."""
    physics = tenants.physics
    uid = make_job(physics, "alices", tenants.alice, annotations={CREATOR: ALICE})
    victim = {"apiVersion": "batch/v1", "kind": "Job", "name": "alices", "uid": uid}

    def made_by_a_controller(name: str, recorded_owner: str) -> str:
        make_job(
            physics,
            name,
            tenants.alice,
            annotations={CREATOR: CRONJOBS, f"{CREATOR}.owner": recorded_owner},
            ownerReferences=[{**victim, "controller": True}],
        )
        return str(pod_of(physics, name)["metadata"]["uid"])

    edited, honest = made_by_a_controller("edited", "mallorys"), made_by_a_controller("honest", uid)

    assert "kubernetes|kubernetes|kubernetes" == owner(tenants.sandbox, edited, physics)
    assert "physics|alice|alice" == owner(tenants.sandbox, honest, physics)


@pytest.fixture
def recording(tenants: Tenants) -> Iterator[None]:
    with creators_recorded(tenants.sandbox, tenants.physics.namespace):
        yield


@pytest.mark.usefixtures("recorded", "recording")
def test_the_suggested_policy_records_creators_and_owners(tenants: Tenants) -> None:
    """A Deployment of Alice's: its pod is of a ReplicaSet that a controller made."""
    physics = tenants.physics
    path = f"/apis/apps/v1/namespaces/{physics.namespace}/deployments"
    body: dict[str, Any] = {
        "metadata": {"name": "hers"},
        "spec": {
            "selector": {"matchLabels": {"app": "hers"}},
            "template": {
                "metadata": {"labels": {"app": "hers"}},
                "spec": {"containers": [container()]},
            },
        },
    }

    def is_recorded() -> bool:
        made = tenants.alice.request("POST", path, body, params={"dryRun": "All"})
        recorded: dict[str, str] = made["metadata"].get("annotations", {})
        return recorded.get(CREATOR) == ALICE

    wait_until(is_recorded, PATIENCE_S, sandbox=tenants.sandbox)
    tenants.alice.create(path, body)
    try:
        uid = physics.await_one_pod("app=hers", bool)["metadata"]["uid"]
        job = physics.await_live(uid)
        assert "UserId=alice(" in physics.scontrol("show", "job", str(job.id))
    finally:
        tenants.alice.delete(f"{path}/hers")
