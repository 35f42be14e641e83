"""The demo's pods for real nodes: the same story, told by real containers.

What the annotations tell KWOK becomes a command, and sizes shrink to fit a small machine.
"""

import copy
from typing import Any

_MARK = "sandbox.slurm-bridge.dev/"
_FOREVER_S = 3600
_GPU = "nvidia.com/gpu"


def on_real_nodes(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return pods and Jobs whose containers do what their annotations say."""
    return [_real(copy.deepcopy(document)) for document in documents]


def _real(document: dict[str, Any]) -> dict[str, Any]:
    pod = document["spec"]["template"] if document["kind"] == "Job" else document
    said = pod.setdefault("metadata", {}).pop("annotations", {})
    name = document["metadata"]["name"]
    seconds = int(said.get(f"{_MARK}run-seconds", _FOREVER_S))
    code = int(said.get(f"{_MARK}exit-code", 0))
    stop = int(said.get(f"{_MARK}stop-seconds", 0))
    for container in pod["spec"]["containers"]:
        # A shell in front hears that it should end, which a `sleep` as process 1 does not.
        trap = f"trap 'sleep {stop}; exit' TERM"
        script = f"{trap}; echo {name} runs on $NODE; sleep {seconds} & wait $!; exit {code}"
        container["command"] = ["sh", "-c", script]
        container["imagePullPolicy"] = "IfNotPresent"
        container["env"] = [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        ]
        container["resources"] = _small(container.get("resources", {}))
    return document


def _small(resources: dict[str, Any]) -> dict[str, Any]:
    wanted = {"requests": {"cpu": "500m", "memory": "64Mi"}}
    limits = {name: count for name, count in resources.get("limits", {}).items() if name == _GPU}
    return {**wanted, "limits": limits} if limits else wanted
