"""What may be taken away: all that is ever rendered, and never what outlives its object."""

from typing import Any

import pytest
from hypothesis import given as for_all
from hypothesis import strategies as st

from slurmoperator.rendering.leftovers import leftovers, possible_objects
from tests.slurmoperator.rendering.given import MADE_FOR, given, rendered

OUTLIVES = {("Secret", "site-ssh-host-keys")}
"""Made once for a LoginSet, and deleted by nobody but Kubernetes."""
ELSEWHERE = {"external": True, "externalConfig": {"host": "example.org", "port": 6817}}
WISHES: dict[str, list[dict[str, Any]]] = {
    "Controller": [
        ELSEWHERE,
        {"metrics": {"enabled": True, "serviceMonitor": {"enabled": True}}},
        {"ha": {"enabled": True, "backups": 2}, "persistence": {"existingClaim": "state"}},
        {"persistence": {"enabled": False}},
    ],
    "Accounting": [ELSEWHERE],
    "NodeSet": [{"workloadDisruptionProtection": False}, {"ssh": {"enabled": False}}],
}


@for_all(st.sampled_from(MADE_FOR), st.data())
def test_all_that_is_rendered_is_known_and_only_the_rest_is_left_over(
    kind: str, data: st.DataObject
) -> None:
    wishes = data.draw(st.lists(st.sampled_from([{}, *WISHES.get(kind, [])])))
    changes: dict[str, Any] = {}
    for wish in wishes:
        changes |= wish
    found = given(kind, **changes)
    bodies = rendered(found)
    made = {(body["apiVersion"], body["kind"], body["metadata"]["name"]) for body in bodies}
    known = set(possible_objects(kind, "site"))

    assert {each for each in made if each[1:] not in OUTLIVES} <= known
    gone = leftovers(kind, found.metadata, bodies)
    names = {(each["apiVersion"], each["kind"], each["metadata"]["name"]) for each in gone}
    assert known - made == names
    assert {"slurm"} >= {each["metadata"]["namespace"] for each in gone}


@pytest.mark.parametrize("kind", MADE_FOR)
def test_keys_and_claims_are_never_left_over(kind: str) -> None:
    found = given(kind)
    kept = {
        reference.name
        for field in ("slurm_key_ref", "jwt_key_ref", "sssd_conf_ref")
        if (reference := getattr(found.spec, field, None)) is not None
    }

    for _, made, name in possible_objects(kind, "site"):
        assert "PersistentVolumeClaim" != made
        assert (made, name) not in OUTLIVES
        assert not (made == "Secret" and name in kept)
