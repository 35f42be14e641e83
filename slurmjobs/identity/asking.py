"""Put a batch job's requests in the terms of the policy's rules."""

import re
from collections.abc import Iterator
from typing import Final

from bridge.domain.request.overrides import Overrides
from bridge.domain.request.permit import Ask
from slurmjobs.script import options as o
from slurmjobs.script.option_values import OptionValues
from slurmjobs.script.options import AnyOption
from slurmruntime.values.faults import Fault

_OPTIONS: Final[dict[str, tuple[AnyOption, ...]]] = {
    "account": (o.ACCOUNT,),
    "partition": (o.PARTITION,),
    "qos": (o.QOS,),
    "reservation": (o.RESERVATION,),
    "priority": (o.PRIORITY,),
    "nice": (o.NICE,),
    "timelimit": (o.TIME,),
    "exclusive": (o.EXCLUSIVE,),
    "constraints": (o.CONSTRAINT,),
    "licenses": (o.LICENSES, o.RESOURCES, o.TRES_PER_TASK),
}
"""The policy's names of fields, and the options that set them."""

_NODE_CHOICES: Final = (o.NODELIST, o.EXCLUDE, o.PREFER, o.BATCH)
_LICENSE_PER_TASK: Final = re.compile(r"(?:^|,)license[/:]([^,=:]+)", re.IGNORECASE)


def ask(options: OptionValues) -> Ask:
    """Return the requests of the options; each of its faults has the path of its option."""
    sharing = options.get(o.EXCLUSIVE)
    return Ask(
        overrides=Overrides(
            account=options.get(o.ACCOUNT) or None,
            partition=options.get(o.PARTITION) or None,
            qos=options.get(o.QOS) or None,
            reservation=options.get(o.RESERVATION) or None,
            priority=options.get(o.PRIORITY),
            nice=options.get(o.NICE),
            time_limit_min=options.get(o.TIME),
            exclusive=None if sharing is None else sharing != "oversubscribe",
            constraints=options.get(o.CONSTRAINT) or None,
            licenses=",".join(_licenses(options)) or None,
        ),
        node_choices=tuple(options.path(option) for option in _NODE_CHOICES if options.get(option)),
        paths={field: options.path(*sources) for field, sources in _OPTIONS.items()},
    )


def never_allowed(options: OptionValues) -> Iterator[Fault]:
    """Yield a fault for each option that Slurm reserves for operators but would accept from our token."""
    if options.get(o.REBOOT):
        why = "slurm-bridge's token would let any user reboot nodes"
        yield Fault(options.path(o.REBOOT), f"--reboot is not allowed: {why}")
    if "EXPEDITED_REQUEUE" in options.every(o.REQUEUE):
        why = "slurm-bridge's token would let any user's jobs start before others"
        yield Fault(options.path(o.REQUEUE), f"--requeue=expedite is not allowed: {why}")


def _licenses(options: OptionValues) -> Iterator[str]:
    """Yield all licences: Slurm takes them from three options."""
    yield from filter(None, (options.get(o.LICENSES), options.get(o.RESOURCES)))
    yield from _LICENSE_PER_TASK.findall(options.get(o.TRES_PER_TASK) or "")
