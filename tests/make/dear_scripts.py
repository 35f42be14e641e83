"""SlurmJobs' scripts that cost much to read, and how the API server asks about them."""

import json


def directives(*options: str) -> str:
    """A script with these options, one a line."""
    return "#!/bin/sh\n" + "".join(f"#SBATCH {option}\n" for option in options) + "true\n"


DEAREST = directives(f"-w n[1-16384] -x n[{'1,' * 8000}1]")
"""Of those that are allowed."""


def slurm_job(script: str, *, name: str = "train") -> bytes:
    """A review of a new SlurmJob."""
    metadata = {"name": name, "namespace": "lab", "uid": "u"}
    request = {
        "uid": "1",
        "kind": {"group": "slurm-bridge.dev", "version": "v1alpha1", "kind": "SlurmJob"},
        "operation": "CREATE",
        "namespace": "lab",
        "userInfo": {"username": "mallory", "groups": []},
        "object": {"metadata": metadata, "spec": {"script": script}},
    }
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()
