"""Write into `docs/security.md` who can bring about each safeguard, and what it gives them. Page in, page out.

A test carries `pytest.mark.safeguard(safeguard, how its beneficiary tries to bring it about, what that gives)`, and fails if it
gives more. Only the sources are read. Text outside the marks of the page is kept (`make docs`).
"""

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from docs.generate import markdown

ROOT = Path(__file__).parents[2]

SAFEGUARDS: Mapping[str, str] = MappingProxyType(
    {
        "circuit breaker": "pods that lost their jobs run on without any",
        "doubt": "a pod whose job Slurm does not know runs on",
        "restore": "a job that Slurm lost is submitted again, ahead of all others",
        "hold": "a node is kept for pods whose jobs Slurm lost",
        "orphans": "placeholders without pods are not cancelled if they are many",
        "grace": "containers may take their time to stop, and whose turn is next waits for them",
        "extension": "a job goes on beyond its time limit until its containers have stopped",
        "suspension": "a suspended job keeps its node and is not charged",
        "second reading": "what a gang's job has given up is let go once Slurm has said so twice",
        "excuse": "a failure counts as the machine's, and not against a Job's `backoffLimit`",
        "fillers": "Slurm gives nothing to others of what pods take past it, and no user is charged",
        "silence": "Slurm starts nothing on a node whose slurmd does not answer",
        "back-off": "after misfits nothing is submitted for a while",
        "escrow": "a native job waits for containers of jobs that have ended",
        "take-over": "pods that SchedMD's bridge placed keep nodes and jobs",
    }
)
"""Each safeguard -> what happens when it acts; in the order of the page."""

_MARK, _END = "<!-- safeguards -->\n", "<!-- end of safeguards -->"
_HEAD = ("safeguard", "when it acts", "tried, to gain from that", "what it gives", "test")


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One line of the table."""

    safeguard: str
    way: str
    """How a beneficiary tries to bring it about."""
    gives: str
    test: str
    """`tests/domain/lifecycle/test_graces.py::test_…`."""


def trials(root: Path = ROOT) -> Iterator[Trial]:
    """Yield all trials, in the order of the safeguards."""
    listed = list(_read(root))
    order = list(SAFEGUARDS)
    yield from sorted(listed, key=lambda trial: order.index(trial.safeguard))


def render(page: str, root: Path = ROOT) -> str:
    """Return the page with a fresh table."""
    before, mark, rest = page.partition(_MARK)
    _, end, after = rest.partition(_END)
    rows = (
        (one.safeguard, SAFEGUARDS[one.safeguard], one.way, one.gives, f"`{one.test}`")
        for one in trials(root)
    )
    return f"{before}{mark}{markdown.table(_HEAD, rows)}{end}{after}"


def _read(root: Path) -> Iterator[Trial]:
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text())
        for name, decorators in _tests(tree.body):
            for decorator in decorators:
                if isinstance(decorator, ast.Call) and _is_mark(decorator):
                    safeguard, way, gives = map(ast.literal_eval, decorator.args)
                    test = f"{path.relative_to(root)}::{name}"
                    yield Trial(safeguard=safeguard, way=way, gives=gives, test=test)


def _tests(body: list[ast.stmt]) -> Iterator[tuple[str, list[ast.expr]]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node.decorator_list
        elif isinstance(node, ast.ClassDef):
            for name, decorators in _tests(node.body):
                yield f"{node.name}::{name}", decorators


def _is_mark(call: ast.Call) -> bool:
    return ast.unparse(call.func) == "pytest.mark.safeguard"


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
