"""The namespaces that one operator serves: where it has no rights, it tries nothing."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

ELSEWHERE: Final = "NotServed"
"""Reason of the condition of an object in another namespace."""


@dataclass(frozen=True, slots=True)
class ServedNamespaces:
    """Named ones, or all."""

    names: AbstractSet[str] = frozenset()
    """Empty: all."""

    def fault(self, namespace: str) -> str:
        """Return why an object of this namespace is left alone; "" if it is not."""
        if not self.names or namespace in self.names:
            return ""
        return (
            f"namespace {namespace} is none of those that slurm-operator serves"
            f" ({', '.join(sorted(self.names))}): have it added to value namespaces of its chart"
        )
