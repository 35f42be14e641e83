"""Wall clocks of our services that are wrong (`hook/sitecustomize.py`): for those started with the hook only."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.client import Sandbox

_HOOK = Path(__file__).parent / "hook"
_AHEAD = "clock-is-ahead-s"


@contextmanager
def adjustable() -> Iterator[None]:
    """The clocks of services that are started inside the block can be set."""
    before = os.environ.get("PYTHONPATH", "")
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_HOOK), before)))
    try:
        yield
    finally:
        os.environ["PYTHONPATH"] = before


def put_ahead(sandbox: Sandbox, service: str, seconds: float) -> None:
    """Let a service's clock jump; below 0, back."""
    ahead = sandbox.instance.bridge / service / _AHEAD
    draft = ahead.with_suffix(".draft")
    draft.write_text(str(seconds))
    draft.rename(ahead)


def put_right(sandbox: Sandbox) -> None:
    """Let every clock jump to the true time."""
    for ahead in sandbox.instance.bridge.glob(f"*/{_AHEAD}"):
        ahead.unlink()
