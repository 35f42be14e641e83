"""Which keys are made, which are told, and that none is made over one that is in use."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slurmoperator.keys import naming
from slurmoperator.keys.naming import KeyReference, KeyUse
from slurmoperator.objects.accounting import AccountingSpec
from slurmruntime.values.faults import Refusal
from tests.slurmoperator.keys.specs import SPEC, spec


def test_what_does_not_exist_is_made_once_and_both_in_one_secret_if_they_are_named_so() -> None:
    apart = naming.find_missing(naming.key_references(spec()), {}, has_run=False)
    assert list(apart.items()) == [
        ("slurm-auth-jwt", {"jwt.key": 64}),
        ("slurm-auth-slurm", {"slurm.key": 1024}),
    ]

    together = spec(jwtKeyRef=None, jwtHs256KeyRef={"name": "slurm-auth-slurm", "key": "jwt.key"})
    one = naming.find_missing(naming.key_references(together), {}, has_run=False)
    assert one == {"slurm-auth-slurm": {"slurm.key": 1024, "jwt.key": 64}}


@pytest.mark.parametrize(
    ("changes", "has_run", "told"),
    [
        ({}, True, "is missing, and daemons run with its key"),
        ({"external": True}, False, "the key of the external daemons"),
    ],
    ids=["in use", "elsewhere"],
)
def test_a_key_that_daemons_have_already_is_never_made_anew(
    changes: dict[str, object], told: str, *, has_run: bool
) -> None:
    with pytest.raises(Refusal) as refused:
        naming.find_missing(naming.key_references(spec(**changes)), {}, has_run=has_run)

    faults = refused.value.faults
    assert [fault.path for fault in faults] == ["spec.slurmKeyRef.name", "spec.jwtKeyRef.name"]
    assert all(told in fault.message for fault in faults)


def test_what_is_wrong_with_a_secret_is_told_with_its_field() -> None:
    seen = {
        "slurm-auth-slurm": {"other": 1024},
        "slurm-auth-jwt": {"jwt.key": 31},
    }

    with pytest.raises(Refusal) as refused:
        naming.find_missing(naming.key_references(spec()), seen, has_run=False)

    assert [fault.text for fault in refused.value.faults] == [
        "spec.slurmKeyRef.key: Secret slurm-auth-slurm has no slurm.key: it has other",
        "spec.jwtKeyRef.key: expected at least 32 bytes in jwt.key of Secret slurm-auth-jwt, found 31",
    ]


def test_the_keys_of_a_controller_and_its_accounting_must_be_the_same() -> None:
    same = msgspec.convert(SPEC, AccountingSpec)
    other = msgspec.convert(
        {**SPEC, "slurmKeyRef": {"name": "another", "key": "slurm.key"}}, AccountingSpec
    )

    assert list(naming.mismatches(spec(), same)) == []
    assert [each.path for each in naming.mismatches(spec(), other)] == ["spec.slurmKeyRef"]


@pytest.mark.parametrize(("step", "uses"), [(0, 2), (1, 2), (2, 1), (3, 1), (4, 1)])
def test_from_the_second_step_on_nobody_needs_the_first_key_of_the_daemons(
    step: int, uses: int
) -> None:
    found = naming.still_needed(naming.key_references(spec()), step)

    assert uses == len(found)
    assert KeyUse.TOKENS in {each.use for each in found}


names = st.sampled_from(["a", "b"])
keys = st.builds(
    KeyReference,
    use=st.sampled_from(KeyUse),
    secret=names,
    key=names,
    path=st.just("spec.slurmKeyRef"),
    is_external=st.booleans(),
)
secrets = st.dictionaries(names, st.integers(0, 2000))


@given(st.lists(keys, max_size=4), st.dictionaries(names, secrets), st.booleans())
def test_nothing_is_made_that_exists_and_what_is_made_is_right(
    named: list[KeyReference], seen: dict[str, dict[str, int]], has_run: bool
) -> None:
    try:
        made = naming.find_missing(named, seen, has_run=has_run)
    except Refusal:
        return

    assert not made.keys() & seen.keys()
    assert not (made and has_run)
    assert naming.find_missing(named, {**seen, **made}, has_run=True) == {}
