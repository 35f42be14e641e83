"""What Kubernetes' tests said in plain and in bridged namespaces, compared, and written as a page."""

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.upstream.selection import Excuse

PASSED, FAILED = "passed", "failed"
_NOT_ENDED = ("skipped", "pending", "interrupted", "aborted", "timedout")
_PREFIX = "[It] "
_TAGS = re.compile(r" ?\[(?:Conformance|NodeConformance|MinimumKubeletVersion[^]]*|LinuxOnly)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whose tests they are, as a page says it."""

    title: str
    introduction: tuple[str, ...]
    """Lines of Markdown."""
    left_out: Mapping[str, str]
    """A pattern of names -> why those are run in neither namespace."""
    images: str
    """Where the images come from: a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Every test that ran, by how it went."""

    both: tuple[str, ...]
    """Passed in both."""
    excused: Mapping[str, str]
    """Passed plain, failed bridged -> the listed reason."""
    worse: tuple[str, ...]
    """Passed plain, failed bridged, without a reason."""
    neither: tuple[str, ...]
    """Failed in a plain namespace of this sandbox already."""
    unfinished: tuple[str, ...]
    """Time ran out before one of the two had an end."""


def read(report: Path) -> dict[str, str]:
    """Return the outcome of every test that came to an end, by its full name, from a JUnit report.

    Without a report there is none: its process was killed.
    """
    if not report.exists():
        return {}
    found = {}
    for case in ET.parse(report).iter("testcase"):  # noqa: S314  # our own child wrote it
        name, status = case.get("name", ""), case.get("status", "")
        if name.startswith(_PREFIX) and status not in _NOT_ENDED:
            found[name.removeprefix(_PREFIX)] = PASSED if status == PASSED else FAILED
    return found


def short(found: Mapping[str, str]) -> dict[str, str]:
    """Return outcomes by names as people know them, without tags."""
    return {_TAGS.sub("", name).strip(): status for name, status in found.items()}


def compare(
    plain: Mapping[str, str], bridged: Mapping[str, str], excuses: Iterable[Excuse]
) -> Comparison:
    """Compare the outcomes of the tests that came to an end in both."""
    known = tuple(excuses)
    both, worse, neither, unfinished = [], [], [], []
    excused = {}
    for name in sorted({*plain, *bridged}):
        if name not in plain or name not in bridged:
            unfinished.append(name)
        elif plain[name] != PASSED:
            neither.append(name)
        elif bridged[name] == PASSED:
            both.append(name)
        elif reasons := [each.reason for each in known if re.search(each.pattern, name)]:
            excused[name] = reasons[0]
        else:
            worse.append(name)
    return Comparison(
        both=tuple(both),
        excused=excused,
        worse=tuple(worse),
        neither=tuple(neither),
        unfinished=tuple(unfinished),
    )


def summary(found: Comparison) -> str:
    """Return what to tell whoever has started the tests."""
    counts = (
        f"{len(found.both)} pass in both, {len(found.excused)} are excused,"
        f" {len(found.neither)} fail plain already"
    )
    return "\n".join((counts, *(f"WORSE: {name}" for name in found.worse)))


def page(found: Comparison, subject: Subject) -> str:
    """Return the page in Markdown."""
    return "\n".join(_lines(found, subject)) + "\n"


def _lines(found: Comparison, subject: Subject) -> Iterator[str]:
    yield f"# {subject.title}"
    yield ""
    yield from subject.introduction
    if found.unfinished:
        yield "There was less time than all of them take; what was not reached says nothing either way."
    yield ""
    yield "| | tests |"
    yield "| --- | --- |"
    yield f"| pass plain and bridged | {len(found.both)} |"
    yield f"| pass plain, and cannot pass bridged | {len(found.excused)} |"
    yield f"| pass plain, fail bridged without a known reason | {len(found.worse)} |"
    yield f"| fail plain already, on this sandbox | {len(found.neither)} |"
    if found.unfinished:
        yield f"| not compared, as time ran out | {len(found.unfinished)} |"
    yield ""
    if found.excused:
        yield from _table(
            "Pass plain, and cannot pass bridged", "why", sorted(found.excused.items())
        )
    if found.worse:
        yield from _list("Pass plain, fail bridged without a known reason", found.worse)
    yield from _list("Pass in both", found.both)
    if found.neither:
        yield from _list("Fail plain already", found.neither)
    if found.unfinished:
        yield from _list("Not compared, as time ran out", found.unfinished)
    patterns = (
        (f"`{pattern.replace('|', chr(92) + '|')}`", why)
        for pattern, why in subject.left_out.items()
    )
    yield from _table("Not run", "why", patterns)
    yield subject.images


def _list(title: str, names: Iterable[str]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    for name in names:
        yield f"* {_escaped(name)}"
    yield ""


def _table(title: str, head: str, rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield f"| test | {head} |"
    yield "| --- | --- |"
    for name, why in rows:
        yield f"| {name if name.startswith('`') else _escaped(name)} | {why} |"
    yield ""


def _escaped(name: str) -> str:
    return re.sub(r"([\[\]*_<>|])", r"\\\1", name)
