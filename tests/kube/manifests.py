"""Objects as users write them, for the real API server."""

from typing import Any

from slurmruntime.values import names

Manifest = dict[str, Any]


def pod(
    name: str,
    *,
    gates: tuple[str, ...] = (names.GATE,),
    finalizers: tuple[str, ...] = (names.FINALIZER,),
    scheduler: str = names.SCHEDULER_NAME,
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: object,
) -> Manifest:
    """As the webhook leaves a pod, unless told otherwise; nobody in a plain control plane schedules it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "finalizers": list(finalizers),
            **({"labels": labels} if labels else {}),
            **({"annotations": annotations} if annotations else {}),
        },
        "spec": {
            "schedulerName": scheduler,
            "schedulingGates": [{"name": gate} for gate in gates],
            "containers": [container()],
            **spec,
        },
    }


def container(name: str = "main", **fields: object) -> Manifest:
    return {"name": name, "image": "example.test/nothing", **fields}


def expression(key: str, *values: str) -> Manifest:
    return {"key": key, "operator": "In", "values": list(values)}


def required(*terms: Manifest) -> Manifest:
    """`nodeAffinity` with these alternatives."""
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}


def preferred(*expressions: Manifest) -> Manifest:
    """`nodeAffinity` with one preference."""
    preference = {"weight": 1, "preference": {"matchExpressions": list(expressions)}}
    return {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}
