"""The question by which we test our own webhook through the API server: a pod that nobody but our webhook would refuse.

It asks Slurm for a field that does not exist. So a refusal that names this field shows that the API server reaches the
webhook, trusts its certificate, has had the pod changed by it (or a policy would have refused the pod before) and shown to
it; and no pod can come of it, whatever happens.
"""

from collections.abc import Mapping

from bridge.domain.names import REQUEST_PREFIX
from bridge.domain.request import overrides

_FIELD = "self-test"

FAULT = overrides.path(_FIELD)
"""What the webhook finds wrong with it."""

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
"""As modest as other people's policies may want it (Pod Security "restricted", quotas)."""


def judge(refused_fields: frozenset[str] | None, said: str) -> str:
    """Say what is wrong; "" if the webhook works.

    Args:
        refused_fields: what was found wrong with the pod; None: it would have been created.
        said: the refusal, or what went wrong on the way.
    """
    if refused_fields is None:
        return (
            "the API server does not ask the webhook: a pod that it refuses would have been created"
        )
    if FAULT not in refused_fields:
        return f"pods of selected namespaces cannot be created: {said}"
    return ""
