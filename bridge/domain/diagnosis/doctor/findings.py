"""What a check says."""

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

F = TypeVar("F")


class Severity(enum.StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but slowly, or not for long."""
    FAULT = "fault"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One answer, without the check's name."""

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
    """What to do; "" where nothing is to be done."""


@dataclass(frozen=True, slots=True)
class Check(Generic[F]):
    """One question about facts."""

    name: str
    ask: Callable[[F], Said]


def ok(found: str) -> Said:
    """All is well."""
    return Said(verdict=Severity.OK, found=found)


def warning(found: str, fix: str) -> Said:
    """It could be better."""
    return Said(verdict=Severity.WARNING, found=found, fix=fix)


def fault(found: str, fix: str) -> Said:
    """It cannot work like this."""
    return Said(verdict=Severity.FAULT, found=found, fix=fix)


def not_checked(why: str) -> Said:
    """The facts are missing."""
    return Said(verdict=Severity.NOT_CHECKED, found=why)


def report(checks: Iterable[Check[F]], facts: F) -> Sequence[Finding]:
    """Ask every question."""
    said = ((check.name, check.ask(facts)) for check in checks)
    return [
        Finding(check=name, verdict=answer.verdict, found=answer.found, fix=answer.fix)
        for name, answer in said
    ]
