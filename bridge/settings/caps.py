"""The settings of `bridge.domain.caps`: one for each row of its table."""

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
    """How much of everything one pod may have; more is refused: docs/caps.md."""

    grace_s: int = _cap("grace_s")
    gang_size: int = _cap("gang_size")
    annotations: int = _cap("annotations")
    annotation_bytes: int = _cap("annotation_bytes")
    labels: int = _cap("labels")
    label_bytes: int = _cap("label_bytes")
    affinity_terms: int = _cap("affinity_terms")
    affinity_expressions: int = _cap("affinity_expressions")
    affinity_values: int = _cap("affinity_values")
    host_ports: int = _cap("host_ports")
    tolerations: int = _cap("tolerations")
    object_bytes: int = _cap("object_bytes")

    @property
    def values(self) -> Caps:
        """The caps as the domain takes them."""
        return Caps(**self.model_dump())
