"""Reviews as kube-apiserver 1.36.4 sent them, byte for byte, and variations of them."""

import json
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "reviews"


def recorded(name: str) -> bytes:
    """One of `reviews/`."""
    return (_FOLDER / f"{name}.json").read_bytes()


def edited(name: str, **changes: object) -> bytes:
    """The same with members of its request replaced."""
    document = json.loads(recorded(name))
    document["request"] |= changes
    return json.dumps(document).encode()


def with_pod(**members: dict[str, Any]) -> bytes:
    """A review of an ordinary pod with members of its metadata and spec replaced."""
    pod = json.loads(recorded("pod"))["request"]["object"]
    for member, changes in members.items():
        pod[member] |= changes
    return edited("pod", object=pod)
