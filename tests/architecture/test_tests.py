"""How the tests themselves are built."""

import ast
import re

from tests.architecture.sources import PACKAGES, ROOT, files, parsed

_SUPPRESSION = re.compile(r"#\s*(noqa: [A-Z0-9, ]+|type: ignore\[[a-z, -]+\])(.*)")


def test_no_test_module_imports_another() -> None:
    found = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in files("tests")
        for node in parsed(path).body
        for name in _imported(node)
        if name.startswith("tests.") and name.rpartition(".")[2].startswith("test_")
    ]
    assert not found, found


def test_every_suppression_says_why() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in files(*PACKAGES, "client", "exporter")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if (match := _SUPPRESSION.search(line)) and "#" not in match.group(2)
    ]
    assert not found, found


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [name.name for name in names]
        case ast.ImportFrom(module=str(module), names=names):
            return [module, *(f"{module}.{name.name}" for name in names)]
        case _:
            return []
