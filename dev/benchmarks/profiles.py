"""A saved profile as a table; the only module here that needs pyinstrument."""

from collections import defaultdict
from pathlib import Path

from pyinstrument.frame import Frame
from pyinstrument.session import Session
from rich.table import Table

_SHOWN = 40
_TICK_S = 1e-9


def table(saved: Path) -> Table:
    """Return the functions that used most.

    With callees and by themselves, in percent of all CPU time.
    """
    own: dict[str, float] = defaultdict(float)
    whole: dict[str, float] = defaultdict(float)
    root = Session.load(saved).root_frame()
    if root is not None:
        _add_up(root, own, whole, frozenset())
    total = max(sum(own.values()), _TICK_S)
    shown = Table(box=None, header_style="bold")
    shown.add_column(f"{saved.stem}, {total:.2f} s", style="cyan", no_wrap=True)
    shown.add_column("with calls %", justify="right")
    shown.add_column("alone %", justify="right")
    names = sorted(whole, key=whole.__getitem__, reverse=True)[:_SHOWN]
    alone = sorted(own, key=own.__getitem__, reverse=True)[:_SHOWN]
    for name in dict.fromkeys((*names, *alone)):
        shown.add_row(name, f"{100 * whole[name] / total:.1f}", f"{100 * own[name] / total:.1f}")
    return shown


def _add_up(
    frame: Frame, own: dict[str, float], whole: dict[str, float], above: frozenset[str]
) -> None:
    """Add up seconds by function; a recursive one counts once with its calls."""
    if frame.is_synthetic and frame.parent:  # its time belongs to its parent
        return
    name = f"{frame.function}  {frame.file_path_short or ''}"
    own[name] += frame.total_self_time
    if name not in above:
        whole[name] += frame.time
    for child in frame.children:
        _add_up(child, own, whole, above | {name})
