"""Where the time of a whole run goes: printed after `make test`, the costliest files first, and what each worker had to do."""

from collections import defaultdict
from collections.abc import Iterable

import pytest

_SHOWN = 40
_PHASES = ("setup", "call", "teardown")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    if config.getoption("dist", "no") != "loadfile":
        return
    reports = [
        report
        for listed in terminalreporter.stats.values()
        for report in listed
        if isinstance(report, pytest.TestReport)
    ]
    terminalreporter.section("where the time goes")
    for line in table(reports):
        terminalreporter.write_line(line)


def table(reports: Iterable[pytest.TestReport]) -> list[str]:
    """The lines to print; a sandbox counts as the setup of the first test that uses it."""
    files: dict[str, dict[str, float]] = defaultdict(lambda: dict.fromkeys(_PHASES, 0.0))
    workers: dict[str, float] = defaultdict(float)
    for report in reports:
        files[report.nodeid.partition("::")[0]][report.when] += report.duration
        workers[getattr(report, "worker_id", "the only worker")] += report.duration
    costliest = sorted(files.items(), key=lambda item: -sum(item[1].values()))[:_SHOWN]
    return [
        *(f"{worker}: {seconds:.0f} s" for worker, seconds in sorted(workers.items())),
        " total   setup    call teardown",
        *(
            f"{sum(spent.values()):5.0f} s {spent['setup']:5.0f} s {spent['call']:5.0f} s"
            f" {spent['teardown']:6.0f} s  {file}"
            for file, spent in costliest
        ),
    ]
