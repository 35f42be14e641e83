"""Figures that were measured, beside their goals and what another program took."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """What was measured, and what it must reach."""

    what: str
    found: float
    unit: str
    most: float | None = None
    """The goal; None for a figure that only explains another."""
    words: str = ""
    theirs: str = ""
    """SchedMD's slurm-exporter, measured by sending its requests at 1000 nodes and 10 000 jobs."""

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the figure as a row: what, found, goal, whether it is reached, theirs."""
        found = f"{self.found:.4g} {self.unit}" + (f" ({self.words})" if self.words else "")
        if self.most is None:
            return self.what, found, "", "", self.theirs
        verdict = "reached" if self.found <= self.most else "MISSED"
        return self.what, found, f"≤ {self.most:g} {self.unit}", verdict, self.theirs


def show(figures: Sequence[Figure], console: Console) -> None:
    """Print a table of all figures."""
    columns = ["what", "found", "goal", ""]
    if any(figure.theirs for figure in figures):
        columns.append("SchedMD's slurm-exporter")
    table = Table(*columns)
    for figure in figures:
        table.add_row(*figure.cells()[: len(columns)])
    console.print(table)
