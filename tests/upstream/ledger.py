"""What earlier runs found, so that 90 minutes of tests can be run in pieces: what has ended in both is not run again."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

_SPECIAL = re.compile(r"([][\\.^$*+?{}|()])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The outcomes of tests by their full names."""

    version: str
    """Of Kubernetes, and of what is tested: outcomes of another say nothing."""
    plain: Mapping[str, str]
    bridged: Mapping[str, str]

    @classmethod
    def read(cls, file: Path, version: str) -> Self:
        """Return what the file has of this version; an empty one if it has nothing."""
        if file.exists():
            found = json.loads(file.read_text())
            if found["version"] == version:
                return cls(**found)
        return cls(version=version, plain={}, bridged={})

    def write(self, file: Path) -> None:
        """Keep it."""
        kept = {"version": self.version, "plain": self.plain, "bridged": self.bridged}
        file.write_text(json.dumps(kept, indent=1, sort_keys=True))

    def and_now(self, plain: Mapping[str, str], bridged: Mapping[str, str]) -> Self:
        """Return it with the outcomes of one more run, which count where there are two."""
        return type(self)(
            version=self.version,
            plain={**self.plain, **plain},
            bridged={**self.bridged, **bridged},
        )

    def settled(self) -> Iterator[str]:
        """Return patterns, in Go's syntax, of the tests that have ended in both.

        Ginkgo matches them with the suite's name before the test's, so they are open to the left.
        """
        for name in sorted({*self.plain} & {*self.bridged}):
            escaped = _SPECIAL.sub(r"\\\1", name)
            yield f"{escaped}$"
