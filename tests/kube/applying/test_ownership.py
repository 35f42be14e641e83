"""Whose an object is, and whether it is as we applied it."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmruntime.crd.metadata import OwnerReference
from slurmruntime.kube.apply import ownership
from slurmruntime.kube.apply.ownership import (
    DIGEST_ANNOTATION,
    FieldOwner,
    Ownership,
    OwnershipMetadata,
)

OURS = "slurm-bridge-operator"
OWNER = OwnerReference(kind="Controller", name="slurm", uid="uid-1", controller=True)

BODY: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "StatefulSet",
    "metadata": {
        "name": "slurm-controller",
        "namespace": "ns",
        "labels": {"a": "b"},
        "ownerReferences": [{"uid": "uid-1", "controller": True}],
    },
    "spec": {
        "replicas": 1,
        "template": {
            "metadata": {},
            "spec": {
                "volumes": [{"name": "run", "emptyDir": {}}],
                "containers": [{"name": "slurmctld", "ports": [{"containerPort": 6817}]}],
            },
        },
    },
}
HELD: dict[str, Any] = {
    "f:metadata": {
        "f:labels": {"f:a": {}},
        "f:annotations": {f"f:{DIGEST_ANNOTATION}": {}},
        "f:ownerReferences": {'k:{"uid":"uid-1"}': {}},
    },
    "f:spec": {
        "f:replicas": {},
        "f:template": {
            "f:spec": {
                "f:volumes": {'k:{"name":"run"}': {".": {}, "f:name": {}, "f:emptyDir": {}}},
                "f:containers": {
                    'k:{"name":"slurmctld"}': {
                        ".": {},
                        "f:name": {},
                        "f:ports": {
                            'k:{"containerPort":6817,"protocol":"TCP"}': {
                                ".": {},
                                "f:containerPort": {},
                            }
                        },
                    }
                },
            }
        },
    },
}


def found(held: dict[str, Any] | None = None, **changes: Any) -> OwnershipMetadata:
    """The object as we have applied it."""
    given_: dict[str, Any] = {
        "name": "slurm-controller",
        "namespace": "ns",
        "uid": "uid-2",
        "annotations": {DIGEST_ANNOTATION: ownership.digest(BODY)},
        "owner_references": (OWNER,),
        "managed_fields": (
            FieldOwner(manager="kube-controller-manager", operation="Update", subresource="status"),
            FieldOwner(manager=OURS, operation="Apply", fields_v1=held or HELD),
        ),
    }
    return OwnershipMetadata(**{**given_, **changes})


def judged(
    there: OwnershipMetadata | None, body: dict[str, Any] = BODY, *, takes_over: bool = False
) -> Ownership:
    verdict = ownership.judge(there, body, owner_uid="uid-1", manager=OURS, takes_over=takes_over)
    return verdict.ownership


def without(held: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """As the API server notes it when we have lost a field: no empty part is left above it."""
    first, *rest = path
    part = without(held[first], tuple(rest)) if rest else {}
    kept = {key: each for key, each in held.items() if key != first}
    is_item = bool(rest) and first.startswith("k:")
    return {**kept, first: part} if is_item or part.keys() - {"."} else kept


def test_what_we_applied_is_in_force_until_we_want_more_or_less() -> None:
    assert judged(None) is Ownership.ABSENT
    assert judged(found()) is Ownership.IN_FORCE
    less = copy.deepcopy(BODY)
    del less["spec"]["replicas"]
    assert judged(found(), less) is Ownership.DIFFERENT
    more = {**BODY, "spec": {**BODY["spec"], "paused": True}}
    assert judged(found(), more) is Ownership.DIFFERENT


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (("f:spec", "f:replicas"), "spec.replicas"),
        (("f:metadata", "f:labels", "f:a"), "metadata.labels"),
        (
            ("f:spec", "f:template", "f:spec", "f:containers", 'k:{"name":"slurmctld"}'),
            "spec.template.spec.containers",
        ),
        (
            (
                "f:spec",
                "f:template",
                "f:spec",
                "f:containers",
                'k:{"name":"slurmctld"}',
                "f:ports",
                'k:{"containerPort":6817,"protocol":"TCP"}',
                "f:containerPort",
            ),
            "spec.template.spec.containers[0].ports[0].containerPort",
        ),
    ],
)
def test_a_field_that_somebody_else_has_changed_is_found(path: tuple[str, ...], told: str) -> None:
    held = without(HELD, path)

    verdict = ownership.judge(found(held), BODY, owner_uid="uid-1", manager=OURS, takes_over=False)

    assert verdict.ownership is Ownership.DIFFERENT
    assert f" {told} " in verdict.reason


@pytest.mark.parametrize("takes_over", [False, True])
def test_what_somebody_else_controls_stays_theirs(*, takes_over: bool) -> None:
    other = OwnerReference(kind="Controller", name="old", uid="uid-0", controller=True)

    verdict = ownership.judge(
        found(owner_references=(other,)),
        BODY,
        owner_uid="uid-1",
        manager=OURS,
        takes_over=takes_over,
    )

    assert verdict.ownership is Ownership.NOT_OURS
    assert "StatefulSet ns/slurm-controller belongs to Controller old" in verdict.reason


@pytest.mark.parametrize("owners", [(), (OWNER,)], ids=["nobody's", "made by another operator"])
def test_what_we_did_not_make_is_taken_only_if_it_is_handed_over(
    owners: tuple[OwnerReference, ...],
) -> None:
    theirs = found(
        owner_references=owners,
        managed_fields=(FieldOwner(manager="manager", operation="Update", fields_v1=HELD),),
    )

    assert judged(theirs) is Ownership.NOT_OURS
    assert judged(theirs, takes_over=True) is Ownership.DIFFERENT


def test_what_is_being_deleted_is_waited_for() -> None:
    assert judged(found(deletion_timestamp="2026-01-01T00:00:00Z")) is Ownership.LEAVING


scalars = st.one_of(st.booleans(), st.integers(0, 9), st.text("ab", max_size=2))
trees = st.recursive(
    scalars,
    lambda inner: st.dictionaries(st.text("abc", min_size=1, max_size=2), inner, max_size=3),
)


def as_held(tree: Any) -> dict[str, Any]:
    """What the API server notes for a tree of maps."""
    if not isinstance(tree, dict) or not tree:
        return {}
    return {".": {}, **{f"f:{key}": as_held(each) for key, each in tree.items()}}


def leaves(tree: dict[str, Any]) -> list[tuple[str, ...]]:
    """The paths of all that is no map, as they stand in what the API server notes."""
    found_: list[tuple[str, ...]] = []
    for key, each in tree.items():
        below = leaves(each) if isinstance(each, dict) else [()]
        found_ += [(f"f:{key}", *path) for path in below]
    return found_


@given(st.dictionaries(st.text("abc", min_size=1, max_size=2), trees, max_size=4), st.data())
def test_one_lost_field_is_noticed_whatever_the_body(spec: dict[str, Any], data: Any) -> None:
    body = {"apiVersion": "v1", "kind": "X", "metadata": {"name": "x"}, "spec": spec}
    held: dict[str, Any] = {"f:spec": as_held(spec), "f:status": {}}
    assert list(ownership.lost_fields(body, held)) == []

    if there := leaves(spec):
        lost = data.draw(st.sampled_from(there))
        assert len(list(ownership.lost_fields(body, without(held, ("f:spec", *lost))))) == 1


@pytest.mark.parametrize(
    ("owner", "manager", "expected"),
    [
        pytest.param(OWNER, OURS, True, id="made by us, for this owner"),
        pytest.param(None, OURS, False, id="its reference was removed"),
        pytest.param(
            OwnerReference(kind="Controller", name="slurm", uid="uid-2", controller=True),
            OURS,
            False,
            id="for another owner of that name",
        ),
        pytest.param(
            OwnerReference(kind="Controller", name="slurm", uid="uid-1"),
            OURS,
            False,
            id="the owner does not control it",
        ),
        pytest.param(OWNER, "helm", False, id="made by another program for this owner"),
    ],
)
def test_only_what_we_made_and_what_still_belongs_to_its_owner_is_ours(
    owner: OwnerReference | None, manager: str, *, expected: bool
) -> None:
    found = OwnershipMetadata(
        name="slurm-controller",
        uid="uid-9",
        owner_references=(owner,) if owner else (),
        managed_fields=(FieldOwner(manager=manager, operation="Apply", fields_v1=HELD),),
    )

    assert expected == ownership.is_ours(found, owner_uid="uid-1", manager=OURS)
