from dataclasses import fields

import pytest
from pydantic import ValidationError

from bridge.domain import caps
from bridge.domain.caps import DEFAULT, TABLE, Caps, Sizes
from bridge.settings.caps import CapsSection


def test_table_and_sizes_have_the_same_rows() -> None:
    assert list(TABLE) == [size.name for size in fields(Sizes)]


def test_the_settings_are_those_that_faults_name() -> None:
    assert list(caps.SETTABLE) == list(CapsSection.model_fields)
    assert CapsSection().values == DEFAULT


@pytest.mark.parametrize("name", TABLE)
def test_no_cap_exceeds_what_is_kept(name: str) -> None:
    assert getattr(DEFAULT, name) <= TABLE[name].largest


@pytest.mark.parametrize("name", caps.SETTABLE)
def test_no_setting_exceeds_what_is_kept(name: str) -> None:
    largest = TABLE[name].largest

    assert largest == getattr(CapsSection(**{name: largest}), name)
    with pytest.raises(ValidationError):
        CapsSection(**{name: largest + 1})


def test_bytes_are_those_of_utf8_in_keys_and_values() -> None:
    found = caps.measure(
        grace_s=0,
        labels={"ab": "c"},
        annotations={"a": "é", "b": "\ud800"},
        terms=(),
        host_ports=0,
        tolerations=(),
    )

    assert (3, 2, 5) == (found.label_bytes, found.annotations, found.annotation_bytes)


def test_each_cap_that_is_exceeded_has_its_fault() -> None:
    found = Sizes(**dict.fromkeys(TABLE, 10**9))

    assert len(TABLE) == len(list(caps.faults(found, DEFAULT)))
    assert [] == list(caps.faults(Sizes(), Caps()))


@pytest.mark.parametrize("name", TABLE)
def test_a_number_is_named_and_only_an_uncounted_list_is_more_than(name: str) -> None:
    def fault_of(size: int) -> str:
        (fault,) = caps.faults(Sizes(**{name: size}), DEFAULT)
        return fault.message

    row = TABLE[name]
    assert f"found {3 * row.largest} (" in fault_of(3 * row.largest)
    is_read_in_part = name in ("tolerations", "affinity_terms")
    just_above = f"more than {row.largest}" if is_read_in_part else row.largest + 1
    assert f"found {just_above} (" in fault_of(row.uncounted)
