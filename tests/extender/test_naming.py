"""Names of claims that Kubernetes has made, and that it drops from a pod's status again."""

from typing import Any

import pytest

from bridge.reconcile.actuator import NotGiven
from tests.extender.giver import Stage, staged
from tests.make.apiserver import Manifest
from tests.make.devices import made_for, template, templated

STATUS = "PATCH namespaces/team-a/pods/both/status"


def both(*named: str) -> Manifest:
    return templated("both", "a", "b", named=named)


def made(entry: str, name: str = "") -> Manifest:
    return made_for("both", entry, name)


def named(stage: Stage) -> dict[str, str]:
    """What the pod's status names, by entry."""
    found: list[dict[str, Any]] = stage.api.pods["both"]["status"]["resourceClaimStatuses"]
    return {each["name"]: each["resourceClaimName"] for each in found}


def show_claims(stage: Stage) -> None:
    for name in stage.api.of("ResourceClaim"):
        stage.everyone.put(stage.read(name))


@pytest.mark.parametrize("known", [(), ("a",), ("b",), ("a", "b")], ids=str)
def test_what_was_made_for_a_pod_is_named_whatever_its_status_says(known: tuple[str, ...]) -> None:
    async def give(stage: Stage) -> None:
        show_claims(stage)
        await stage.give("both", 3)
        assert {"both-a", "both-b"} == set(stage.given())
        assert {"a": "both-a", "b": "both-b"} == named(stage)

    staged(give, both(*known), made("a"), made("b"), devices=2)


def test_names_are_written_before_anything_is_given() -> None:
    """Nobody else's write can drop them once the pod has its node."""

    async def give(stage: Stage) -> None:
        await stage.give("both", 3)
        writes = [each for each in stage.api.asked if each.startswith("PATCH")]
        assert STATUS == writes[0]
        assert 1 == writes.count(STATUS)

    staged(give, both("a", "b"), made("a"), made("b"), devices=2)


def test_the_name_of_a_single_claim_cannot_be_dropped_and_costs_no_write() -> None:
    async def give(stage: Stage) -> None:
        await stage.give("both", 1)
        assert STATUS not in stage.api.asked

    staged(give, templated("both", "a", named=("a",)), made("a"))


def test_of_two_claims_for_one_entry_kubernetes_chooses() -> None:
    async def give(stage: Stage) -> None:
        show_claims(stage)
        with pytest.raises(NotGiven, match="Kubernetes has not made the claim for b yet"):
            await stage.give("both", 3)
        assert STATUS not in stage.api.asked

    staged(give, both("a"), made("a"), made("b"), made("b", "another-b"), template(), devices=2)


def test_a_claim_that_was_not_made_for_the_pod_is_not_named() -> None:
    foreign = made("b")
    foreign["metadata"]["ownerReferences"][0]["uid"] = "uid-of-another"

    async def give(stage: Stage) -> None:
        show_claims(stage)
        with pytest.raises(NotGiven, match="Kubernetes has not made the claim for b yet"):
            await stage.give("both", 3)
        assert STATUS not in stage.api.asked

    staged(give, both("a"), made("a"), foreign, template(), devices=2)
