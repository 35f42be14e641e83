"""SlurmJobs as the benchmarks create them."""

from collections.abc import Mapping
from typing import Any

from slurmjobs.objects.slurmjob import API_VERSION, KIND


def path(namespace: str) -> str:
    """Return the path of a namespace's SlurmJobs."""
    return f"/apis/{API_VERSION}/namespaces/{namespace}/slurmjobs"


def manifest(name: str, script: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a SlurmJob."""
    spec = {"script": script, "options": dict(options)}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": name}, "spec": spec}


def ended() -> Mapping[str, Any]:
    """Return the status of a job that ended well."""
    at = "2026-01-01T00:00:00Z"
    message = "Slurm job 4711 completed; it ran for 0:01:00"
    conditions = [
        {
            "type": kind,
            "status": "True",
            "reason": kind,
            "lastTransitionTime": at,
            "message": message,
        }
        for kind in ("Submitted", "Complete")
    ]
    return {
        "phase": "Succeeded",
        "jobId": 4711,
        "state": "COMPLETED",
        "reason": "Succeeded",
        "message": message,
        "exitCode": 0,
        "startTime": at,
        "endTime": at,
        "attempt": 1,
        "nodes": "hybrid-0",
        "conditions": conditions,
    }
