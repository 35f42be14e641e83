"""What is generated from the types of a cluster's objects."""

import msgspec
import pytest

from deploy import manifests
from slurmoperator.objects.definitions import definitions
from slurmoperator.objects.kinds import KINDS
from tests.make.bounds import EXACT, bounds
from tests.slurmoperator.examples import BY_NAME, SPECS, manifest


def test_the_files_are_what_the_types_say() -> None:
    made = manifests.cluster_kinds()

    assert len(KINDS) + 1 == len(made)
    assert set(made) == set(manifests.CLUSTER_KINDS.iterdir())
    stale = [file.name for file, text in made.items() if file.read_text() != text]
    assert not stale, f"make manifests: {stale}"


def test_the_rights_in_the_file_are_those_of_the_program() -> None:
    assert manifests.operator_rights() == manifests.OPERATOR_RIGHTS.read_text(), "make manifests"


def test_every_bound_of_the_definitions_is_exact() -> None:
    found = list(bounds(definitions()))

    assert found
    assert all(-EXACT <= each <= EXACT for each in found)


@pytest.mark.parametrize("kind", SPECS)
def test_the_types_read_what_a_chart_writes(kind: str) -> None:
    read = msgspec.convert(manifest(kind), type=BY_NAME[kind].object_type)

    assert "site" == msgspec.to_builtins(read)["metadata"]["name"]
    for field in BY_NAME[kind].type_of("spec").__struct_encode_fields__:
        assert field in SPECS[kind] or field not in msgspec.to_builtins(read)["spec"], field
