"""The two columns of `docs/performance.md`: the chart's defaults, and everything that a site can switch on for speed. Pure.

Slurm's own configuration is the same in both: `docs/install.md` asks every site for it.
"""

from collections.abc import Iterable
from dataclasses import dataclass

DEFAULTS, FASTEST = "defaults", "fastest"
COLUMNS = (DEFAULTS, FASTEST)
_ALSO = " + "
_BINDER, _TOGETHER = "config.placement.binder", "workloads.together"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A value of the chart by which a site makes the bridge faster."""

    name: str
    """As in values.yaml: `config.…` for a setting of `docs/settings.md`."""
    default: str
    """The chart's. The sandbox may have another, so it is always written."""
    fast: str


SWITCHES = (
    Switch(name="config.slurm.kick", default="false", fast="true"),
    Switch(name="admission.calls", default="two", fast="one"),
    Switch(name=_BINDER, default="kube-scheduler", fast="extender"),
    Switch(name=_TOGETHER, default="false", fast="true"),
)
"""What the columns differ in. `admission.mutate: policy` is none: it excludes `admission.calls: one`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What a run measures."""

    name: str
    values: tuple[str, ...]
    """Of the chart, as for `sandbox up --value`."""


def column(name: str, also: Iterable[str] = ()) -> Column:
    """Return a column, with more switches on than it has by itself.

    Raises:
        ValueError: there is no such column or switch.
    """
    if name not in COLUMNS:
        raise ValueError(f"no column {name!r}; there are {', '.join(COLUMNS)}")
    named = {switch.name for switch in SWITCHES}
    extra = tuple(dict.fromkeys(also))
    if unknown := [each for each in extra if each not in named]:
        raise ValueError(f"no switch {', '.join(unknown)}; there are {', '.join(sorted(named))}")
    return Column(
        name=_ALSO.join((name, *extra)),
        values=tuple(
            f"{switch.name}={switch.fast if name == FASTEST or switch.name in extra else switch.default}"
            for switch in SWITCHES
        ),
    )


def is_together(values: Iterable[str]) -> bool:
    """Check whether one process is extender and controllers: the sandbox runs what the chart would."""
    return f"{_TOGETHER}=true" in values


def filters(values: Iterable[str]) -> bool:
    """Check whether kube-scheduler asks the extender about these pods, which the extender could bind itself."""
    return f"{_BINDER}=extender" not in values
