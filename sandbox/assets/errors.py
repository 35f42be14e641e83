"""What can go wrong between an asset's name and a folder of programs that run."""


class AssetError(Exception):
    """An asset is not to be had. The text says, asset by asset, what was tried, what failed, and what provides it."""


class Unusable(Exception):
    """A folder does not hold what it should; `faults` lists everything that is wrong with it."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class FetchError(Exception):
    """A fetch or a build failed. The text is one line, the cause first."""
