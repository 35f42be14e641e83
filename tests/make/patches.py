"""What the webhook's patches make of a pod."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from slurmruntime.model.json_patch import Operation


def patched(document: Mapping[str, Any], patch: tuple[Operation, ...]) -> dict[str, Any]:
    """RFC 6902, as far as the webhook uses it."""
    result = deepcopy(dict(document))
    for operation in patch:
        assert operation["op"] in ("add", "remove")
        *above, last = (
            step.replace("~1", "/") for step in str(operation["path"]).removeprefix("/").split("/")
        )
        target: Any = result
        for step in above:
            target = target[int(step) if isinstance(target, list) else step]
        if operation["op"] == "remove":
            del target[last]
        elif last == "-":
            target.append(operation["value"])
        else:
            target[last] = operation["value"]
    return result
