"""What the README names, as runs of tests: releases of Kubernetes, of Slurm's data parsers, and of Python."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

LIFE = "tests/integration/test_life_of_a_pod.py"
"""A pod's whole life through all programs."""
HYBRID = "tests/integration/test_hybrid.py"
"""Pods on nodes that a slurmd registers: v0.0.43 knows no other (docs/install.md)."""
OF_KUBERNETES = (LIFE, "tests/chart/test_policies.py")
OF_PYTHON = (LIFE, "tests/webhook")
DATA_PARSERS = ("v0.0.43", "v0.0.44", "v0.0.45")
PYTHONS = tuple(f"3.{minor}" for minor in range(11, 16))
"""From the oldest we support to one that is not out yet; those that PATH has are run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Tests to run on one release of something."""

    what: str
    """`Kubernetes`, `data parser` or `Python`."""
    release: str
    tests: tuple[str, ...]
    environment: Mapping[str, str]
    python: str = ""
    """The interpreter to make an environment of; "" for the one that runs the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a run went."""

    run: Run
    passed: int
    failed: int

    @property
    def is_good(self) -> bool:
        """Whether there was something to pass, and all of it did."""
        return self.passed > 0 and self.failed == 0


def runs(
    kubernetes: Mapping[str, str], pythons: Mapping[str, str], *, parser_variable: str
) -> Iterator[Run]:
    """Return the runs.

    Args:
        kubernetes: releases -> folders with their programs.
        pythons: releases -> interpreters.
        parser_variable: the environment variable that names slurmrestd's data parser.
    """
    for release, folder in kubernetes.items():
        environment = {"SANDBOX_KUBE": folder}
        yield Run(what="Kubernetes", release=release, tests=OF_KUBERNETES, environment=environment)
    for release in DATA_PARSERS:
        environment = {parser_variable: release}
        tests = (HYBRID,) if release == "v0.0.43" else (LIFE,)
        yield Run(what="data parser", release=release, tests=tests, environment=environment)
    for release, python in pythons.items():
        yield Run(what="Python", release=release, tests=OF_PYTHON, environment={}, python=python)


def page(outcomes: Iterable[Outcome], beside: Mapping[str, str]) -> str:
    """Return the page in Markdown; `beside` has the versions of what did not vary."""
    fixed = ", ".join(f"{name} {version}" for name, version in beside.items())
    rows = (
        f"| {outcome.run.what} {outcome.run.release} | {outcome.passed} | {outcome.failed} |"
        f" {', '.join(f'`{test}`' for test in outcome.run.tests)} |"
        for outcome in outcomes
    )
    return "\n".join(
        (
            "# Releases that were run",
            "",
            "Written by `make test-releases`: the same tests on real servers of each release that we support at the ends of the range,",
            f"each varied alone. What did not vary was {fixed}.",
            "What is not here was not run.",
            "",
            "| release | passed | failed | tests |",
            "| --- | --- | --- | --- |",
            *rows,
            "",
            "A data parser is what slurmrestd of that release speaks: v0.0.43 Slurm 25.05, v0.0.44 Slurm 25.11, v0.0.45 Slurm 26.05.",
            "It is the newest slurmrestd that speaks it here, restricted to that one. The daemons of older releases were not run: no distribution ships them.",
            "v0.0.43 neither creates external nodes nor tells which are: pods go to nodes with a slurmd only, as [On a cluster](install.md#requirements) says.",
            "",
        )
    )
