"""Progress of a fetch for people: one line per stage, with seconds, on standard error."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The current stage of one asset."""

    asset: str
    text: str
    elapsed_s: float
    """Since this asset was requested."""
    done: bool = False
    """True for the last stage: the asset is available."""

    @property
    def line(self) -> str:
        """Return a log line: `kube: compiling, caches 1600 MiB (151 s)`."""
        return f"{self.asset}: {self.text} ({self.elapsed_s:.0f} s)"


Report = Callable[[Stage], None]
"""Called with every stage, from several threads, one per asset."""


@dataclass(frozen=True, slots=True)
class Teller:
    """Reports the stages of one asset with their times."""

    asset: str
    report: Report
    began_s: float = field(default_factory=time.monotonic)

    def __call__(self, text: str, *, done: bool = False) -> None:
        """Report the current stage of the work."""
        elapsed_s = time.monotonic() - self.began_s
        self.report(Stage(asset=self.asset, text=text, elapsed_s=elapsed_s, done=done))


@contextlib.contextmanager
def shown(stream: TextIO) -> Iterator[Report]:
    """Return a report that writes lines to `stream`; on a terminal, one moving line per asset."""
    if stream.isatty():
        with _moving(stream) as report:
            yield report
    else:
        yield lambda stage: print(stage.line, file=stream, flush=True)


@contextlib.contextmanager
def _moving(stream: TextIO) -> Iterator[Report]:
    text = TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True))
    columns = (SpinnerColumn(finished_text="✓"), text, TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=Console(file=stream), expand=True) as progress:

        def report(stage: Stage) -> None:
            if stage.asset not in tasks:
                tasks[stage.asset] = progress.add_task("", total=None)
            description = f"{stage.asset}: {stage.text}"
            progress.update(tasks[stage.asset], description=description)
            if stage.done:
                progress.update(tasks[stage.asset], total=1, completed=1)

        yield report
