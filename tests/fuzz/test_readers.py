"""Every reader of others' text works by the length of the text, never by what it stands for; no clock decides."""

import ast
import contextlib
import fnmatch
import functools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fuzz import corpus
from tests.fuzz.exemptions import EXEMPT
from tests.fuzz.measuring import Cost, called_functions, measure, steps_up_to
from tests.fuzz.readers.reader import FIXED_MEMORY, Reader
from tests.fuzz.readers.registry import READERS

ROOT = Path(__file__).parents[2]
LARGE = 1024
"""Bytes; the quarter of it is the small input."""
DEAR = 100
"""Steps for each byte; so dear a reader gets a quarter."""
MOST_GROWTH = 6
"""Four times the bytes may take four times the work, and half as much again."""

OBJECT_STEPS = 150_000
"""What one object may cost on an event loop: 5 ms on a quiet core. 1.5 MiB that are only decoded, in C and without steps, take as long."""
DEAREST = 3
"""Of the worst inputs, those that take the most steps when they are short are tried at the bound."""
AT_MOST = 4 * 2**20
"""Bytes of what is longer, because it is a list."""

LONG = 256 * 1024
"""Bytes for a child process, where a quadratic search in the interpreter's C code, which takes no steps, would take minutes of CPU."""
SHORTER = 4 * 1024
"""Where steps are taken for each byte, they are counted, and so many are enough."""
CHILD = """
import resource, sys
sys.path.insert(0, ".")
from tests.fuzz.test_readers import read, texts
from tests.fuzz.readers.registry import READERS
for reader in READERS[int(sys.argv[1])::int(sys.argv[2])]:
    for text in texts(reader):
        used = resource.getrusage(resource.RUSAGE_SELF)
        resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + 4, -1))
        print(reader.name, repr(text[:60]), flush=True)
        read(reader, text)
print("all", flush=True)
"""
"""At least three seconds of CPU for each input; linear readers take milliseconds."""
PROGRAMS = (
    *("agent", "bridge", "client/slurmclient", "controllers", "exporter", "extender", "leader"),
    *("slurmjobs", "slurmoperator", "slurmruntime", "webhook"),
)
PRIMITIVES = frozenset(
    (
        *("split", "rsplit", "splitlines", "loads", "load", "b64decode", "fromisoformat"),
        *("match", "fullmatch", "search", "findall", "finditer", "sub"),
    )
)


def read(reader: Reader, text: str) -> None:
    with contextlib.suppress(*reader.refusals):
        reader.read(text)


def texts(reader: Reader) -> Iterator[str]:
    """Yield long inputs if they are read in no steps of Python, and shorter ones otherwise."""
    lengths = (min(length, reader.most_bytes) for length in (256, SHORTER, LONG))
    for tiny, shorter, long in zip(*map(reader.grammar.worst, lengths), strict=True):
        few = cost(reader, tiny[: len(tiny) // 2]), cost(reader, tiny)
        yield long if few[1].steps - few[0].steps < 20 else shorter


def cost(reader: Reader, text: str) -> Cost:
    return measure(lambda: read(reader, text))


def too_much(reader: Reader, few: Cost, many: Cost, length: int) -> Iterator[str]:
    """Yield what exceeds the reader's cost for so many bytes, `few` being the cost of a quarter of them."""
    for name, cost_of_many, most in (
        ("steps", many.steps, reader.fixed_steps + reader.steps * length),
        ("memory", many.peak_bytes, FIXED_MEMORY + reader.memory * length),
        ("more steps", many.steps, MOST_GROWTH * few.steps + reader.fixed_steps),
        ("more memory", many.peak_bytes, MOST_GROWTH * few.peak_bytes + FIXED_MEMORY),
    ):
        if cost_of_many > most:
            yield f"{name}: {cost_of_many}, expected at most {most}"


@pytest.mark.parametrize("reader", [pytest.param(each, id=each.name) for each in READERS])
def test_steps_and_memory_follow_the_bytes_that_are_read(reader: Reader) -> None:
    for text in ("", "a"):  # what is made once
        read(reader, text)
    large = min(LARGE if reader.steps < DEAR else LARGE // 4, reader.most_bytes)
    pairs = zip(reader.grammar.worst(large // 4), reader.grammar.worst(large), strict=True)
    for short, long in pairs:
        length = len(long.encode(errors="surrogatepass"))
        for is_last in (
            False,
            True,
        ):  # another thread may allocate, too; not twice as much at the same place
            excess = list(too_much(reader, cost(reader, short), cost(reader, long), length))
            assert not is_last or not excess, (f"{long[:80]!r}, {length} bytes", excess)
            if not excess:
                break


@pytest.mark.parametrize("reader", [pytest.param(each, id=each.name) for each in READERS])
def test_no_object_takes_an_event_loop_for_long(reader: Reader) -> None:
    """At the bound, where linear cost may still be far too much. `Reader.dear` says what is so, and why that harms nobody."""
    read(reader, "a")  # what is made once
    lengths = (min(LARGE, reader.most_bytes), min(AT_MOST, reader.most_bytes))
    short, long = (list(reader.grammar.worst(length)) for length in lengths)
    dearest = sorted(
        zip(short, long, strict=True), key=lambda pair: -steps(reader, pair[0], 10**7)
    )[:DEAREST]
    most = max(steps(reader, text, OBJECT_STEPS) for _, text in dearest)

    assert bool(reader.dear) == (most > OBJECT_STEPS), (most, [text[:60] for _, text in dearest])


def steps(reader: Reader, text: str, most: int) -> int:
    return steps_up_to(most, lambda: read(reader, text))


@pytest.mark.parametrize("part", range(2))
def test_no_regular_expression_takes_more_than_it_reads(part: int) -> None:
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(part), "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    last = child.stdout.rstrip().rpartition("\n")[2]
    assert "all" == last, f"{child.returncode}: {last}\n{child.stderr[-2000:]}"


@pytest.mark.parametrize("reader", [pytest.param(each, id=each.name) for each in READERS])
def test_no_reader_fails_at_what_was_found_before(reader: Reader) -> None:
    for text in corpus.inputs(reader):
        read(reader, text)


# -- the registry is complete ----------------------------------------------------------------------


@functools.cache
def text_readers() -> tuple[tuple[str, str], ...]:
    """Return the file and name of each function that takes a text and takes it apart."""
    return tuple(
        (str(path.relative_to(ROOT)), function)
        for program in PROGRAMS
        for path in sorted((ROOT / program).rglob("*.py"))
        for function in _functions(ast.parse(path.read_text()), "")
    )


def _functions(node: ast.AST, within: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{within}{child.name}.")
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if _takes_text_apart(child):
                yield f"{within}{child.name}"
            yield from _functions(child, f"{within}{child.name}.<locals>.")


def _takes_text_apart(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    arguments = function.args
    texts = {
        argument.arg
        for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
        if argument.annotation is not None
        and re.fullmatch(r"(str|bytes|Json)( \| None)?", ast.unparse(argument.annotation))
    }
    return bool(texts) and any(_is_primitive(node, texts) for node in ast.walk(function))


def _is_primitive(node: ast.AST, texts: set[str]) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name)) if name in PRIMITIVES:
            return True
        case ast.Call(func=ast.Attribute(attr="decode"), args=[ast.Name() | ast.Attribute(), *_]):
            return True
        case ast.Call(func=ast.Name(id="int" | "Decimal" | "float")):
            return True
        case ast.For(iter=ast.Name(id=name)) | ast.comprehension(iter=ast.Name(id=name)):
            return name in texts
        case ast.While(test=test):
            return any(isinstance(part, ast.Name) and part.id in texts for part in ast.walk(test))
        case _:
            return False


def test_every_reader_is_in_the_registry_or_exempt_with_a_reason() -> None:
    def everything() -> None:
        for reader in READERS:
            for text in reader.grammar.worst(min(24, reader.most_bytes)):
                read(reader, text)
            for text in corpus.inputs(reader):
                read(reader, text)

    called = called_functions(everything, str(ROOT))
    missing = sorted(
        f"{file}:{name}"
        for file, name in text_readers()
        if (file, name) not in called
        and not any(fnmatch.fnmatchcase(f"{file}:{name}", pattern) for pattern in EXEMPT)
    )
    assert [] == missing, (
        "add them to tests/fuzz/readers, or to tests/fuzz/exemptions.py with a reason"
    )


def test_no_exemption_is_left_over() -> None:
    names = [f"{file}:{name}" for file, name in text_readers()]
    assert [] == [
        pattern
        for pattern in EXEMPT
        if not any(fnmatch.fnmatchcase(name, pattern) for name in names)
    ]
