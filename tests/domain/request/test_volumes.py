"""What a pod's claims say about where it may run."""

import pytest

from bridge.domain.model.volumes import ClaimFacts, Reach, StorageClass, VolumeClaim
from bridge.domain.request import volumes
from tests.make.placing import term

HERE: Reach = (term(("zone", "In", "a")),)
THERE: Reach = (term(("zone", "In", "b")),)


def bound(name: str = "data", reach: Reach = HERE) -> ClaimFacts:
    return ClaimFacts(name=name, claim=VolumeClaim(name=name, volume="pv-1"), reach=reach)


def unbound(storage_class: StorageClass | None) -> ClaimFacts:
    return ClaimFacts(name="data", claim=VolumeClaim(name="data"), storage_class=storage_class)


WAITS = StorageClass(waits_for_consumer=True, reach=THERE)


def test_a_bound_claims_volume_limits_and_a_class_limits_where_its_volumes_are_made() -> None:
    assert (HERE, THERE) == volumes.reaches([bound(), bound("same"), unbound(WAITS)])
    assert () == volumes.reaches([bound(reach=()), unbound(StorageClass()), unbound(None)])


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        pytest.param(bound(), "", id="bound"),
        pytest.param(unbound(WAITS), "", id="waits-for-its-pod"),
        pytest.param(unbound(None), "", id="nobody-knows"),
        pytest.param(unbound(StorageClass()), "claim data is not bound", id="not-yet"),
        pytest.param(ClaimFacts(name="data", claim=None), "claim data does not exist", id="none"),
    ],
)
def test_whom_kubernetes_cannot_bind_anywhere_is_not_submitted(
    facts: ClaimFacts, told: str
) -> None:
    found = [fault.text for fault in volumes.faults([facts])]

    assert bool(told) == bool(found)
    assert all(told in text for text in found)


def test_a_gang_is_limited_by_what_all_of_its_members_use() -> None:
    assert (HERE,) == volumes.in_common([[bound(), unbound(WAITS)], [bound()]])
    assert () == volumes.in_common([[bound()], []])
