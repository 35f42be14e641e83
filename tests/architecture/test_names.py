"""Names of things are nouns of the field: no pronouns, and no participle where a noun belongs."""

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.architecture.sources import GENERATED, ROOT, files, parsed

FORBIDDEN = {"each", "found", "told", "said", "given", "there", "whole", "kept", "made", "thing"}
"""They say nothing of what is meant, and each means several things in one function."""

LEFT: dict[str, int] = {
    "agent": 0,
    "bridge": 0,
    "webhook": 0,
    "extender": 0,
    "controllers": 0,
    "leader": 0,
    "slurmjobs": 0,
    "slurmoperator": 0,
    "slurmcli": 0,
    "slurmruntime": 1,
    "client/slurmclient": 0,
    "exporter/slurmexporter": 0,
    "dev/sandbox": 0,
    "dev/benchmarks": 100,
}
"""How often each package still has such a name. It only shrinks."""


@pytest.mark.parametrize("package", sorted(LEFT))
def test_things_are_named_by_nouns(package: str) -> None:
    bound = Counter(name for name in _bound(package) if name in FORBIDDEN)

    assert sum(bound.values()) <= LEFT[package], bound
    assert sum(bound.values()) == LEFT[package], f"{bound}: fewer than allowed, so lower LEFT"


def _bound(package: str) -> Iterator[str]:
    """Every name that the code of a package gives to something: variables, parameters, fields, functions."""
    for path in files(package):
        if str(path.relative_to(ROOT)) in GENERATED:
            continue
        for node in ast.walk(parsed(path)):
            match node:
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    yield name
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    yield name.strip("_")
                case ast.Attribute(attr=name, ctx=ast.Store()):
                    yield name.strip("_")
                case ast.alias(asname=str(name)):
                    yield name
                case _:
                    pass
