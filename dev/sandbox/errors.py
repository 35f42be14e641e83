"""The sandbox's errors: what failed, where, and what to do."""

from collections.abc import Sequence


class SandboxError(Exception):
    """Shown to the caller verbatim, without a traceback."""


class PartFailedError(SandboxError):
    """A part did not come up, or exited by itself."""

    def __init__(self, *, part: str, what: str, log: str, tail: Sequence[str], advice: str) -> None:
        indented = "".join(f"\n    {line}" for line in tail)
        super().__init__(f"{part} {what}\n  end of {log}:{indented}\n  {advice}")
        self.part = part
