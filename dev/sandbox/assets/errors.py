"""The errors of resolving an asset."""


class AssetError(Exception):
    """An asset is not available.

    The text lists for each asset what was tried, what failed, and what to do.
    """


class Unusable(Exception):
    """A folder lacks programs, or they are unsuitable; `faults` lists everything that is wrong."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class FetchError(Exception):
    """A fetch or a build failed. The text is one line, the cause first."""
