"""Whether a dotted name is defined in the checkout, found out by reading the sources: nothing is imported."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.architecture.sources import ROOT, parsed


def exists(name: str) -> bool:
    """Check whether a dotted name is a module, or something that is defined or imported in one."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        path = _file(parts[:cut])
        if path is not None:
            return _has(path, parts[cut:])
        if _place(parts[:cut]).is_dir():
            return cut == len(parts)
    return False


def _place(parts: list[str]) -> Path:
    return Path(ROOT / "dev" if (ROOT / "dev" / parts[0]).is_dir() else ROOT, *parts)


def _file(parts: list[str]) -> Path | None:
    where = _place(parts)
    candidates = (where.with_suffix(".py"), where / "__init__.py")
    return next((path for path in candidates if path.is_file()), None)


def _has(path: Path, parts: list[str]) -> bool:
    if not parts:
        return True
    first, *rest = parts
    found = _defined(path).get(first)
    if found is None:
        return False
    if isinstance(found, str):
        return exists(".".join((found, *rest))) or not (rest or _is_ours(found))
    if isinstance(found, ast.ClassDef) and rest:
        return _class_has(path, found, rest[0])
    return not rest or not isinstance(found, ast.FunctionDef | ast.AsyncFunctionDef)


def _class_has(path: Path, found: ast.ClassDef, name: str) -> bool:
    """Look in the class and in whatever it is made of."""
    if name in {defined for defined, _ in _definitions(found.body)}:
        return True
    bases = [ast.unparse(base).partition("[")[0] for base in found.bases]
    return any(_has(path, [*base.split("."), name]) for base in bases)


def _is_ours(name: str) -> bool:
    return _place([name.partition(".")[0]]).is_dir()


@cache
def _defined(path: Path) -> dict[str, ast.AST | str]:
    return dict(_definitions(parsed(path).body))


def _definitions(body: list[ast.stmt]) -> Iterator[tuple[str, ast.AST | str]]:
    """Names with what they stand for; of what is imported, its own dotted name."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node
            case ast.Assign(targets=targets):
                for target in targets:
                    yield from ((each.id, node) for each in _names(target))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name, node
            case ast.Import(names=names):
                yield from ((each.asname or each.name, each.name) for each in names)
            case ast.ImportFrom(module=str(module), names=names):
                yield from ((each.asname or each.name, f"{module}.{each.name}") for each in names)
            case ast.If() | ast.Try() | ast.With():
                yield from _definitions(node.body)
            case _:
                pass


def _names(target: ast.expr) -> Iterator[ast.Name]:
    yield from (each for each in ast.walk(target) if isinstance(each, ast.Name))
