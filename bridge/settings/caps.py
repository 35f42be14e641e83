"""The settings of `bridge.domain.caps`: those rows of its table that sites differ in."""

from typing import Any

from pydantic import Field

from bridge.domain import caps
from bridge.domain.caps import Caps
from slurmruntime.settings.values import Section


def _cap(name: str) -> Any:
    row = caps.TABLE[name]
    meaning = f"Limit on {row.path} ({row.unit}). Protects {row.protects}."
    return Field(getattr(caps.DEFAULT, name), ge=1, le=row.largest, description=meaning)


class CapsSection(Section):
    """How much one pod may have of what sites differ in; more is refused, as is more of anything else: docs/caps.md."""

    grace_s: int = _cap("grace_s")
    gang_size: int = _cap("gang_size")

    @property
    def values(self) -> Caps:
        """The caps as the domain takes them."""
        return Caps(**self.model_dump())
