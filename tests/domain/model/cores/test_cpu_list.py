"""Lists of processors, as written by the kernel, by Slurm and by strangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.domain.model.cores import cpu_list


@given(st.frozensets(st.integers(0, cpu_list.MOST - 1), max_size=200))
def test_what_is_written_is_read(cpus: frozenset[int]) -> None:
    assert cpus == cpu_list.parse(cpu_list.render(cpus))


def test_neighbours_are_a_range() -> None:
    assert "0-2,8" == cpu_list.render({8, 2, 0, 1})


@pytest.mark.parametrize(
    "text", ["a", "1-", "3-1", "-1", "1,,2", "0-9999", "8192", "1" * 5000, "0x1", "1 2", "²"]
)
def test_anything_else_is_no_list(text: str) -> None:
    assert cpu_list.parse(text) is None


@given(st.text(max_size=50))
def test_no_text_does_harm(text: str) -> None:
    found = cpu_list.parse(text)

    assert found is None or all(0 <= cpu < cpu_list.MOST for cpu in found)
