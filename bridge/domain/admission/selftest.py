"""Test our own webhook through the API server, with a pod that only our webhook refuses.

The pod asks Slurm for a field that does not exist. So a refusal that names this field shows that
the API server reaches the webhook, trusts its certificate, had it mutate the pod (a policy would
have refused the pod otherwise) and had it validate the pod. Whatever happens, no pod can be
created.
"""

from collections.abc import Mapping

from bridge.domain.names import REQUEST_PREFIX
from bridge.domain.request import overrides

_FIELD = "self-test"

FAULT = overrides.path(_FIELD)
"""The path of the fault that the webhook finds."""

POD: Mapping[str, object] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "name": "slurm-bridge-self-test",
        "annotations": {f"{REQUEST_PREFIX}{_FIELD}": "never created"},
    },
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "none",
                "image": "invalid.invalid/none",
                "resources": {
                    "requests": {"cpu": "1m", "memory": "1Mi"},
                    "limits": {"cpu": "1m", "memory": "1Mi"},
                },
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "capabilities": {"drop": ["ALL"]},
                },
            }
        ],
    },
}
"""As modest as other policies may require (Pod Security "restricted", quotas)."""


def judge(refused_fields: frozenset[str] | None, said: str) -> str:
    """Return what is wrong; "" if the webhook works.

    Args:
        refused_fields: the paths of the faults found in the pod; None if it would have been
            created.
        said: the refusal, or what went wrong on the way.
    """
    if refused_fields is None:
        return (
            "the API server does not call the webhook: a pod that the webhook refuses would have "
            "been created"
        )
    if FAULT not in refused_fields:
        return f"pods of selected namespaces cannot be created: {said}"
    return ""
