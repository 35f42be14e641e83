"""Write the generated part of `docs/operator.md`, read from standard input: `python -m docs.generate.operator`."""

import sys
from collections.abc import Iterable

from docs.generate import markdown
from docs.generate.operator_differences import BODY_DIFFERENCES, DIFFERENCES, Difference
from slurmoperator.configuration.parameters import (
    COSTS_ONLY_JOBS,
    REFUSED_LIVE,
    SLURM_CONF,
    ChangeTakes,
)

BEGIN = "<!-- begin generated: python -m docs.generate.operator -->\n"
END = "<!-- end generated -->\n"

_TAKES = {
    ChangeTakes.RESTART_SLURMCTLD: "a restart of slurmctld",
    ChangeTakes.RESTART_ALL: "a restart of all daemons, slurmctld first",
}
_WHILE_IN_USE = " while a NodeSet wants workers, or Slurm has jobs, or nodes that wait for them"


def render(page: str) -> str:
    """Return the page with its generated part as the code has it.

    Raises:
        ValueError: The page has no such part.
    """
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"docs/operator.md: expected {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{_generated()}\n{end}{after}"


def _generated() -> str:
    takes = [
        [f"`{each.name}`", _TAKES[each.takes]]
        for each in sorted(SLURM_CONF.values(), key=lambda each: (each.takes, each.name))
        if each.takes in _TAKES
    ]
    takes += [
        [f"`{name}`", f"refused{_WHILE_IN_USE if name in COSTS_ONLY_JOBS else ''}: {why}"]
        for name, why in sorted(REFUSED_LIVE.items())
    ]
    return (
        markdown.table(["parameter of slurm.conf", "a change takes"], takes)
        + "\nThe files differ from those of SchedMD's operator only here:\n\n"
        + _differences("file", DIFFERENCES)
        + "\nWhat is made of the objects differs only here:\n\n"
        + _differences("of", BODY_DIFFERENCES)
    )


def _differences(head: str, found: Iterable[Difference]) -> str:
    rows = ([f"`{each.file}`", each.where, each.theirs, each.ours, each.reason] for each in found)
    return markdown.table([head, "where", "theirs", "ours", "because"], rows)


if __name__ == "__main__":
    sys.stdout.write(render(sys.stdin.read()))
