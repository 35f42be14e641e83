"""The results of checks."""

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

F = TypeVar("F")


class Severity(enum.StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but slowly, or not for long."""
    FAULT = "fault"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One result, without the check's name."""

    verdict: Severity
    found: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report."""

    check: str
    verdict: Severity
    found: str
    fix: str = ""
    """What to do; "" if nothing has to be done."""


@dataclass(frozen=True, slots=True)
class Check(Generic[F]):
    """One question about the facts."""

    name: str
    ask: Callable[[F], Said]


def ok(found: str) -> Said:
    """Report that all is well."""
    return Said(verdict=Severity.OK, found=found)


def warning(found: str, fix: str) -> Said:
    """Report something that works but could be better."""
    return Said(verdict=Severity.WARNING, found=found, fix=fix)


def fault(found: str, fix: str) -> Said:
    """Report something that cannot work as it is."""
    return Said(verdict=Severity.FAULT, found=found, fix=fix)


def not_checked(why: str) -> Said:
    """Report that the facts are missing."""
    return Said(verdict=Severity.NOT_CHECKED, found=why)


def report(checks: Iterable[Check[F]], facts: F) -> Sequence[Finding]:
    """Run every check."""
    said = ((check.name, check.ask(facts)) for check in checks)
    return [
        Finding(check=name, verdict=answer.verdict, found=answer.found, fix=answer.fix)
        for name, answer in said
    ]
