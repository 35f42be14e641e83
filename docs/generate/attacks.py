"""Write the list of attacks in `docs/security.md` from the tests that try them: page in, page out.

A test carries `pytest.mark.attack(attack, why it fails)`, and so does a case that
`tests.attacks.attack` makes. Only the sources are read. Text outside the marks of the page is kept (`make docs`).
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

ROOT = Path(__file__).parents[2]
FOLDERS = ("integration", "chart", "slurmoperator", "webhook", "fuzz")
"""Of `tests`, in the order of the list: what an ordinary user can try comes first."""

_MARK, _END = "<!-- attacks -->\n", "<!-- end -->"
_HEAD = "| attack | why it fails | test |\n| --- | --- | --- |\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """One line of the list."""

    what: str
    why: str
    test: str
    """`tests/integration/test_attacks.py::test_a_forged_label…`, with `[id]` for one case of several."""


def attacks(root: Path = ROOT) -> Iterator[Attack]:
    """Yield all attacks, file by file, in the order of their tests."""
    files = (path for folder in FOLDERS for path in sorted((root / "tests" / folder).glob("*.py")))
    for path in files:
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                test = f"{path.relative_to(root)}::{node.name}"
                for decorator in node.decorator_list:
                    yield from _marked(decorator, test)


def render(page: str, root: Path = ROOT) -> str:
    """Return the page with a fresh list."""
    found = list(attacks(root))
    tests = len({one.test.partition("[")[0] for one in found})
    rows = "".join(f"| {one.what} | {one.why} | `{one.test}` |\n" for one in found)
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    return (
        f"{before}{mark}{len(found)} attacks, tried by {tests} tests:\n\n{_HEAD}{rows}{end}{after}"
    )


def _marked(decorator: ast.expr, test: str) -> Iterator[Attack]:
    if _is_call(decorator, "pytest.mark.attack"):
        yield _attack(decorator.args, test)
        return
    for call in ast.walk(decorator):
        if _is_call(call, "attack"):
            case = ast.literal_eval(call.args[0])
            yield _attack(call.args[1:3], f"{test}[{case}]")


def _is_call(node: ast.AST, name: str) -> TypeGuard[ast.Call]:
    return isinstance(node, ast.Call) and ast.unparse(node.func) == name


def _attack(texts: Sequence[ast.expr], test: str) -> Attack:
    what, why = map(ast.literal_eval, texts)
    return Attack(what=what, why=why, test=test)


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
