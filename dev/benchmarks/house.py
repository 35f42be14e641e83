"""Count the figures by which the house is judged: `make figures`.

Product means the Python files outside tests, docs, deploy and dev, without what slurm-client generates. Prose means strings and comments,
identifiers are NAME tokens. A figure is for comparing two commits, not a goal by itself.
"""

import ast
import io
import re
import subprocess
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import grimp

ROOT: Final = Path(__file__).resolve().parents[2]
OUTSIDE: Final = frozenset({"tests", "docs", "deploy", "build", "dist", "site"})
GENERATED: Final = (
    "slurmclient/models.py",
    "slurmclient/api/raw.py",
    "slurmclient/api/operations.py",
)
UNPACKED: Final = frozenset({"sandbox", "dev"})
"""Folders that are product by their care, and not part of what is installed on a cluster."""

MANY_ARGUMENTS: Final = 10
PRIVATE_WORDS: Final = ("each", "found", "told", "said", "given", "there", "whole", "kept", "made")
ENGLISH: Final = {
    "told": r"\btold\b",
    "whoever": r"\bwhoever\b",
    "stranger": r"\bstrangers?\b",
    "anew": r"\banew\b",
    "is to be": r"\b(is|are) to (be|have)\b",
    "what is there": r"\bwhat is (there|wrong|wanted|so|needed|to)\b",
    "said": r"\bsaid\b",
}
PARTICIPLE: Final = re.compile(
    r"_?(?:[A-Z][a-z]+(?:ed|en)|Kept|Told|Seen|Made|Found|Held|Said|Left|Built|Read|Sent|Leaving|Lost)(?:[A-Z]\w*)?"
)
NO_PARTICIPLE: Final = frozenset(
    {
        *("Need", "Token", "Speed", "Seed", "Feed", "Bed", "Shed", "Screen", "Open", "Seven"),
        *("Shorten", "When"),
    }
)
MISTAKES: Final = ("Error", "Exception", "Fault", "Refused", "Rejected")
WATCH_EVENTS: Final = frozenset({"Added", "Modified", "Deleted", "Restarted"})
"""What a watch yields: every client of Kubernetes calls them so."""


@dataclass(slots=True)
class Count:
    """What the files of the product hold."""

    lines: Counter[str] = field(default_factory=Counter)
    """By top-level folder."""
    files: int = 0
    names: Counter[str] = field(default_factory=Counter)
    words: int = 0
    english: Counter[str] = field(default_factory=Counter)
    long_signatures: list[str] = field(default_factory=list)
    participles: list[str] = field(default_factory=list)
    """Classes whose name begins with one; exceptions and events of a watch are left out."""
    bare_participles: int = 0
    """Those of them that name no noun after it."""
    faults_tested: int = 0
    """Calls of isinstance with Refused or Fault."""
    callables: int = 0
    """Fields of classes that hold a function."""
    untyped: Counter[str] = field(default_factory=Counter)
    """Uses of `Any` by top-level folder; those of the benchmarks do not count."""

    def take(self, path: Path) -> None:
        """Count one file."""
        text = path.read_text(encoding="utf-8")
        place = path.relative_to(ROOT)
        self.files += 1
        self.lines[place.parts[0]] += text.count("\n")
        prose = []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                self.names[token.string] += 1
            elif token.type == tokenize.COMMENT:
                prose.append(token.string)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                prose.append(node.value)
            self._take_node(node, place)
        joined = "\n".join(prose)
        self.words += len(joined.split())
        for word, pattern in ENGLISH.items():
            self.english[word] += len(re.findall(pattern, joined, re.IGNORECASE))

    def _take_node(self, node: ast.AST, place: Path) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                count = _arguments(node.args)
                if count >= MANY_ARGUMENTS:
                    self.long_signatures.append(f"{place}:{node.lineno} {node.name} {count}")
            case ast.ClassDef():
                self.callables += sum(
                    "Callable" in ast.unparse(line.annotation)
                    for line in node.body
                    if isinstance(line, ast.AnnAssign)
                )
                if _is_participle(node) and place.name != "errors.py":
                    self.participles.append(f"{place}:{node.lineno} {node.name}")
                    self.bare_participles += not re.search("[a-z][A-Z]", node.name)
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                tested = set(re.findall(r"\w+", ast.unparse(kinds)))
                self.faults_tested += bool(tested) and tested <= {"Refused", "Fault"}
            case ast.Name(id="Any") if place.parts[:2] != ("dev", "benchmarks"):
                self.untyped[place.parts[0]] += 1
            case _:
                pass


def _arguments(arguments: ast.arguments) -> int:
    plain = [*arguments.posonlyargs, *arguments.args]
    is_method = bool(plain) and plain[0].arg in ("self", "cls")
    return len(plain) + len(arguments.kwonlyargs) - is_method


def _is_participle(node: ast.ClassDef) -> bool:
    bases = [ast.unparse(base) for base in node.bases]
    if node.name.endswith(MISTAKES) or any(base.endswith(MISTAKES) for base in bases):
        return False
    if node.name in WATCH_EVENTS:
        return False
    match = PARTICIPLE.fullmatch(node.name)
    first = re.match(r"_?([A-Z][a-z]+)", node.name)
    return match is not None and first is not None and first[1] not in NO_PARTICIPLE


def product_files() -> Iterator[Path]:
    """Yield the Python files of the product that git knows."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py"],  # noqa: S607  # the developer's own git
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in sorted(listed.stdout.split()):
        path = ROOT / name
        if path.exists() and Path(name).parts[0] not in OUTSIDE and not name.endswith(GENERATED):
            yield path


def _packages() -> list[str]:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return list(settings["tool"]["importlinter"]["root_packages"])


def rooms(graph: grimp.ImportGraph, packages: Sequence[str]) -> str:
    """Say how the top-level packages import one another."""
    known: dict[str, set[str]] = {package: set() for package in packages}
    for module in graph.modules:
        top = module.partition(".")[0]
        imported = {
            name.partition(".")[0] for name in graph.find_modules_directly_imported_by(module)
        }
        known[top] |= imported & known.keys() - {top}
    circles = sorted(
        f"{room} <-> {other}"
        for room in known
        for other in known[room]
        if room < other and room in known[other]
    )
    arrows = sum(map(len, known.values()))
    return f"{len(known)} packages, {arrows} arrows, in both directions: {', '.join(circles) or 'none'}"


def beyond_the_runtime(graph: grimp.ImportGraph) -> str:
    """Say which names of the bridge the operator imports, and how many modules it reaches through them."""
    pattern = re.compile(r"^\s*from (bridge[\w.]*) import (.+)$", re.MULTILINE)
    names: set[str] = set()
    for path in (ROOT / "slurmoperator").rglob("*.py"):
        text = re.sub(
            r"\(\s*([^)]*?),?\s*\)",
            lambda found: " ".join(found[1].split()),
            path.read_text(encoding="utf-8"),
        )
        for module, imported in pattern.findall(text):
            names |= {
                f"{module}.{name.strip().partition(' as ')[0]}"
                for name in imported.split("#")[0].split(",")
            }
    reached = {
        name
        for name in graph.find_upstream_modules("slurmoperator", as_package=True)
        if name.startswith("bridge")
    }
    return f"{len(names)} names, {len(reached)} modules: {', '.join(sorted(names))}"


def _settings() -> int:
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    return sum(line.startswith("| `") for line in page.splitlines())


def _dependencies() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return len(project["project"]["dependencies"])


def _top_level() -> int:
    listed = subprocess.run(
        ["git", "ls-tree", "-d", "--name-only", "HEAD"],  # noqa: S607  # likewise
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return sum(not name.startswith(".") for name in listed.stdout.split())


def _per_thousand(counts: Counter[str], words: Sequence[str], total: int) -> str:
    return ", ".join(f"{word} {counts[word] * 1000 / total:.2f}" for word in words)


def main() -> None:
    """Print the figures."""
    count = Count()
    for path in product_files():
        count.take(path)
    lines = sum(count.lines.values())
    packed = lines - sum(count.lines[folder] for folder in UNPACKED)
    biggest, most = count.lines.most_common(1)[0]
    packages = _packages()
    graph = grimp.build_graph(packages[0], *packages[1:])
    identifiers = sum(count.names.values())
    print(f"product: {count.files} files, {lines} lines; without sandbox {packed}")
    print(
        f"by folder: {', '.join(f'{name} {number}' for name, number in count.lines.most_common())}"
    )
    print(f"biggest folder: {biggest}, {most * 100 / lines:.0f} % of all lines")
    print(f"top-level folders: {_top_level()}; {rooms(graph, packages)}")
    print(f"of the bridge the operator imports {beyond_the_runtime(graph)}")
    print(f"run-time dependencies {_dependencies()}, rows of docs/settings.md {_settings()}")
    print(f"per 1000 identifiers: {_per_thousand(count.names, PRIVATE_WORDS, identifiers)}")
    print(
        f"per 1000 words of prose: {_per_thousand(count.english, tuple(ENGLISH), count.words)}; {count.words} words"
    )
    print(f"functions with {MANY_ARGUMENTS} or more arguments: {len(count.long_signatures)}")
    print("".join(f"  {place}\n" for place in count.long_signatures), end="")
    print(
        f"classes named by a participle: {len(count.participles)}; without a noun after it: {count.bare_participles}"
    )
    print("".join(f"  {place}\n" for place in count.participles), end="")
    print(
        f"isinstance on Refused or Fault: {count.faults_tested}; functions as fields of classes: {count.callables}"
    )
    untyped = ", ".join(f"{name} {number}" for name, number in count.untyped.most_common())
    print(f"uses of Any: {count.untyped.total()} ({untyped})")


if __name__ == "__main__":
    main()
