"""People of an API server who have Kubernetes' own roles."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from tests.slurmoperator.examples import BY_NAME

RBAC = "/apis/rbac.authorization.k8s.io/v1"
API = "rbac.authorization.k8s.io/v1"
EFFECTIVE_S = 30
"""Until a policy holds."""


def told(api: Api, method: str, where: str, body: object, **options: Any) -> str:
    """What an API server says against it, as a dry run; "" if it takes it."""
    try:
        api.request(
            method, where, body, params={"dryRun": "All", **options.pop("params", {})}, **options
        )
    except ApiError as error:
        return f"{error.status}: {error.message}"
    return ""


@contextlib.contextmanager
def editor(
    served: Sandbox, namespace: str, *, also: tuple[str, ...] = (), role: str = "edit"
) -> Iterator[Api]:
    """Somebody with Kubernetes' role `edit` in a namespace, or another role, who may also create objects of these kinds there."""
    user = f"eve-{uuid.uuid4().hex[:8]}"
    where = f"{RBAC}/namespaces/{namespace}"
    plurals = [BY_NAME[kind].plural for kind in also]
    rules = (
        [{"apiGroups": ["slinky.slurm.net"], "resources": plurals, "verbs": ["*"]}] if also else []
    )
    extra = {"apiVersion": API, "kind": "Role", "metadata": {"name": user}, "rules": rules}
    served.admin.create(f"{where}/roles", extra)
    for kind, bound in (("ClusterRole", role), ("Role", user)):
        served.admin.create(
            f"{where}/rolebindings",
            {
                "apiVersion": API,
                "kind": "RoleBinding",
                "metadata": {"name": f"{user}-{bound}"},
                "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": bound},
                "subjects": [
                    {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
                ],
            },
        )
    with Api(served.user_kubeconfig(user)) as api:
        yield api
