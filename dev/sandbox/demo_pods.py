"""The demo's pods for real nodes: the same story, with real containers.

The annotations for KWOK become commands, and sizes shrink to fit a small machine.
"""

import copy

from slurmruntime.model.objects import JsonDict

_MARK = "sandbox.slurm-bridge.dev/"
_FOREVER_S = 3600
_GPU = "nvidia.com/gpu"


def on_real_nodes(documents: list[JsonDict]) -> list[JsonDict]:
    """Return pods and Jobs whose containers do what their annotations ask of KWOK."""
    return [_real(copy.deepcopy(document)) for document in documents]


def _real(document: JsonDict) -> JsonDict:
    pod = document["spec"]["template"] if document["kind"] == "Job" else document
    annotations = pod.setdefault("metadata", {}).pop("annotations", {})
    name = document["metadata"]["name"]
    seconds = int(annotations.get(f"{_MARK}run-seconds", _FOREVER_S))
    code = int(annotations.get(f"{_MARK}exit-code", 0))
    stop = int(annotations.get(f"{_MARK}stop-seconds", 0))
    for container in pod["spec"]["containers"]:
        # A shell handles SIGTERM, which a `sleep` as process 1 ignores.
        trap = f"trap 'sleep {stop}; exit' TERM"
        script = f"{trap}; echo {name} runs on $NODE; sleep {seconds} & wait $!; exit {code}"
        container["command"] = ["sh", "-c", script]
        container["imagePullPolicy"] = "IfNotPresent"
        container["env"] = [
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
        ]
        container["resources"] = _small(container.get("resources", {}))
    return document


def _small(resources: JsonDict) -> JsonDict:
    wanted = {"requests": {"cpu": "500m", "memory": "64Mi"}}
    limits = {name: count for name, count in resources.get("limits", {}).items() if name == _GPU}
    return {**wanted, "limits": limits} if limits else wanted
