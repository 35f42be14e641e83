"""A Job that any failure of a pod ends, but for one that the pod was not to blame for."""

from typing import Any

UNLESS_DISRUPTED: dict[str, Any] = {
    "backoffLimit": 0,
    "podFailurePolicy": {
        "rules": [
            {
                "action": "Ignore",
                "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}],
            }
        ]
    },
}
