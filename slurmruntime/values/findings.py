"""The results of checks."""

import enum
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

F = TypeVar("F")


class Severity(enum.StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARNING = "warning"
    """It works, but slowly, or not for long."""
    FAULT = "fault"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One result, without the check's name."""

    verdict: Severity
    message: str
    fix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One line of the report."""

    check: str
    verdict: Severity
    found: str
    fix: str = ""
    """What to do; "" if nothing has to be done."""


Check: TypeAlias = Callable[[F], Result]


def ok(message: str) -> Result:
    """Report that all is well."""
    return Result(verdict=Severity.OK, message=message)


def warning(message: str, fix: str) -> Result:
    """Report something that works but could be better."""
    return Result(verdict=Severity.WARNING, message=message, fix=fix)


def fault(message: str, fix: str) -> Result:
    """Report something that cannot work as it is."""
    return Result(verdict=Severity.FAULT, message=message, fix=fix)


def not_checked(why: str) -> Result:
    """Report that the facts are missing."""
    return Result(verdict=Severity.NOT_CHECKED, message=why)


def report(checks: Mapping[str, Check[F]], facts: F) -> Sequence[Finding]:
    """Run every check; each has the name that the report shows."""
    results = ((name, check(facts)) for name, check in checks.items())
    return [
        Finding(check=name, verdict=result.verdict, found=result.message, fix=result.fix)
        for name, result in results
    ]
