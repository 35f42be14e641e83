"""What the figures of the house count."""

from pathlib import Path

import pytest

from benchmarks import house

SOURCE = """
from typing import Any

class Rule:
    table: dict[str, Any]
    check: Callable[[Any], bool]
    name: str

def judge(answer: object, /) -> "Any":
    return isinstance(answer, Refused) or isinstance(answer, (Fault, Refused)) or isinstance(answer, (Fault, str))
"""


def counted(monkeypatch: pytest.MonkeyPatch, root: Path, name: str) -> house.Count:
    monkeypatch.setattr(house, "ROOT", root)
    path = root / name
    path.parent.mkdir(parents=True)
    path.write_text(SOURCE)
    count = house.Count()
    count.take(path)
    return count


def test_uses_of_any_and_functions_as_fields_are_counted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    count = counted(monkeypatch, tmp_path, "bridge/rules.py")

    assert {"bridge": 2} == count.untyped
    assert 1 == count.callables


def test_uses_of_any_in_benchmarks_do_not_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert not counted(monkeypatch, tmp_path, "dev/benchmarks/rules.py").untyped


def test_isinstance_of_a_fault_and_something_else_is_no_test_for_a_refusal(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert 2 == counted(monkeypatch, tmp_path, "bridge/rules.py").faults_tested
