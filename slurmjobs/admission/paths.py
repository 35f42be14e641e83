"""Map faults of a script and its options to paths in the SlurmJob."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from slurmruntime.values.faults import Fault

_LINE: Final = re.compile(r"line [0-9]+")
_FIELDS: Final = "fields."
_PATHS: Final = {"script": "spec.script", "options": "spec.options"}


def in_object(faults: Iterable[Fault]) -> Iterator[Fault]:
    """Return the faults with paths in the object: `spec.script`, its line, `spec.options.time`."""
    for fault in faults:
        if _LINE.fullmatch(fault.path):
            yield Fault("spec.script", fault.text)
        elif fault.path.startswith(_FIELDS):
            yield Fault(f"spec.options.{fault.path.removeprefix(_FIELDS)}", fault.message)
        else:
            yield Fault(_PATHS.get(fault.path, fault.path), fault.message)
