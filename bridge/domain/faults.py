"""What is wrong with an object, told so that its author can put it right."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong: where, and in words what was found and what would be accepted."""

    path: str
    """`spec.containers[0].resources.requests[cpu]`, `metadata.annotations[…]`."""
    message: str

    @property
    def text(self) -> str:
        """Path and message in one line."""
        return f"{self.path}: {self.message}"


@dataclass(frozen=True, slots=True)
class Refused:
    """A request that cannot be met as it is, with everything that was found wrong with it; at least one fault."""

    faults: tuple[Fault, ...]

    @property
    def text(self) -> str:
        """All faults in one line."""
        return "; ".join(fault.text for fault in self.faults)
