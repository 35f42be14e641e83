"""The demo's output: commands as typed, their output, and two outputs side by side, updated live."""

import sys
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

_PIPE_WIDTH = 132
"""Columns if the output goes to a file: wide enough that nothing is folded."""

_PACE_S = 0.5


class Screen:
    """A terminal, or a log file to which each change is appended."""

    def __init__(self) -> None:
        width = None if sys.stdout.isatty() else _PIPE_WIDTH
        self._console = Console(width=width, highlight=False)

    def chapter(self, title: str, text: str = "") -> None:
        """Begin a chapter of the story."""
        self._console.print()
        self._console.rule(Text(title, style="bold cyan"), align="left", style="cyan")
        if text:
            self._console.print(Text(text))

    def command(self, line: str, output: str = "") -> None:
        """Show a command and what it printed."""
        self._console.print(Text.assemble(("$ ", "green"), (line, "bold")), soft_wrap=True)
        if output.strip():
            self._console.print(Text(output.rstrip()), soft_wrap=True)

    def say(self, text: str) -> None:
        """Show a line of our own."""
        if text:
            self._console.print(Text(text, style="dim"), soft_wrap=True)

    def complain(self, text: str) -> None:
        """Show an error."""
        self._console.print(Text(text, style="bold red"), soft_wrap=True)

    def watch(self) -> "Watch":
        """Show two outputs side by side for a while."""
        return Watch(self._console)


class Watch:
    """Two panels, redrawn in place on a terminal and appended to a file."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(console=console, auto_refresh=False) if console.is_terminal else None
        self._last = ""

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _where: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def until(
        self, is_over: Callable[[], bool], *, deadline_s: float, left: "Source", right: "Source"
    ) -> bool:
        """Show both sources until it is over; return False if the deadline passed first."""
        end = time.monotonic() + deadline_s
        while time.monotonic() < end:
            over = is_over()
            self._show(left, right)
            if over:
                return True
            time.sleep(_PACE_S)
        return False

    def _show(self, left: "Source", right: "Source") -> None:
        texts = left.read(), right.read()
        frame: RenderableType = Columns(
            Panel(Text(text), title=f"$ {source.command}", title_align="left", border_style="cyan")
            for source, text in zip((left, right), texts, strict=True)
        )
        if self._live:
            self._live.update(frame, refresh=True)
            return
        # In a file every tick of a clock would be a new frame: show only other changes.
        shown = "\n".join(map(_without_clocks, texts))
        if shown != self._last:
            self._last = shown
            self._console.print(frame)


class Source:
    """A command and how to run it."""

    def __init__(self, command: str, read: Callable[[], str]) -> None:
        self.command = command
        self.read = read


def _without_clocks(text: str) -> str:
    """Remove words like 12s and 0:07."""
    words = (line.split() for line in text.splitlines())
    return "\n".join(
        " ".join(
            word for word in line if not (word[0].isdigit() and (":" in word or word[-1] == "s"))
        )
        for line in words
    )
