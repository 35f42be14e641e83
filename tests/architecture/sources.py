"""The product's source files, and what a reader can find in them without running anything."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PRODUCT = (
    "agent",
    "bridge",
    "webhook",
    "extender",
    "controllers",
    "slurmjobs",
    "slurmoperator",
    "slurmcli",
    "slurmruntime",
)
"""What is installed on a cluster."""
PACKAGES = (*PRODUCT, "dev/audit", "dev/sandbox", "dev/benchmarks", "dev/generate")
GENERATED = {
    "client/slurmclient/models.py",
    "client/slurmclient/api/operations.py",
    "client/slurmclient/api/raw.py",
}
"""Written by `dev/generate`, and read by nobody from top to bottom."""


def files(*folders: str) -> Iterator[Path]:
    """Every Python file in these folders of the checkout, sorted."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(), filename=str(path))


def docstrings(tree: ast.AST) -> Iterator[str]:
    """Every docstring, those under attributes included."""
    for body in _bodies(tree):
        for node in body:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                text = node.value.value
                if isinstance(text, str):
                    yield text
            yield from docstrings(node)


def _bodies(tree: ast.AST) -> Iterator[list[ast.AST]]:
    """What may hold statements; expressions, most of a tree, cannot."""
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        found = getattr(tree, field, None)
        if isinstance(found, list):
            yield found


def strings(tree: ast.Module) -> Iterator[str]:
    """Every string constant that is neither a docstring nor a type's name."""
    passed_over = {id(constant) for node in ast.walk(tree) for constant in _prose_and_types(node)}
    for node in ast.walk(tree):
        if id(node) in passed_over:
            continue
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def _prose_and_types(node: ast.AST) -> Iterator[ast.AST]:
    match node:
        case ast.Expr(value=ast.Constant() as text):
            yield text
        case ast.AnnAssign(annotation=kind) | ast.arg(annotation=ast.expr() as kind):
            yield from ast.walk(kind)
        case ast.FunctionDef(returns=ast.expr() as kind):
            yield from ast.walk(kind)
        case ast.AsyncFunctionDef(returns=ast.expr() as kind):
            yield from ast.walk(kind)
        case ast.Call(func=ast.Name(id="NewType" | "TypeVar" | "cast"), args=[kind, *_]):
            yield from ast.walk(kind)
        case ast.Assign(targets=[ast.Name(id=name)], value=kind) if name[:1].isupper():
            if not name.isupper() and isinstance(kind, ast.BinOp | ast.Subscript):
                yield from ast.walk(kind)


def module(path: Path) -> str:
    """The dotted name of a file's module."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
