"""What can go wrong between an asset's name and a folder of working programs."""


class AssetError(Exception):
    """An asset is not available.

    The text says, asset by asset, what was tried, what failed, and what provides it.
    """


class Unusable(Exception):
    """A folder lacks what it should hold; `faults` lists everything that is wrong with it."""

    def __init__(self, *faults: str) -> None:
        super().__init__("; ".join(faults))
        self.faults = faults


class FetchError(Exception):
    """A fetch or a build failed. The text is one line, the cause first."""
