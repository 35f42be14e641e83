"""What people do by hand to what is ours, with and without the right to."""

from dataclasses import dataclass
from typing import Any

from sandbox.api import Api, ApiError
from tests.integration.worlds import Worlds


def refusal(
    api: Api, method: str, path: str, body: object = None, kind: str = "merge-patch+json"
) -> str:
    """What the API server says against it; "" if it did it."""
    content_type = f"application/{kind}" if method == "PATCH" else "application/json"
    try:
        api.request(method, path, body, content_type=content_type)
    except ApiError as error:
        return error.message
    return ""


BREAK_GLASS = "slurm-bridge:break-glass"


def tear(worlds: Worlds, pod: str) -> None:
    """Take the finalizer off by hand, and the pod away at once."""
    path = f"{worlds.path}/pods/{pod}"
    with Api(worlds.sandbox.user_kubeconfig("medic", "system:masters", BREAK_GLASS)) as medic:
        medic.patch(path, {"metadata": {"finalizers": None}})
        medic.delete(path, gracePeriodSeconds=0)
    worlds.await_gone(pod)


@dataclass(frozen=True, slots=True)
class Scene:
    """What alice has."""

    worlds: Worlds
    alice: Api
    before: dict[str, Any]

    @property
    def hers(self) -> str:
        """Her running pod's path."""
        return f"{self.worlds.path}/pods/hers"

    def tried(self, method: str, path: str, body: object = None, kind: str = "merge") -> str:
        """What is said against it; `{ns}` in the path is her namespace."""
        path = path.replace("{ns}", self.worlds.path).replace("{hers}", self.hers)
        form = "yaml" if kind == "apply" else "json"
        return refusal(self.alice, method, path, body, f"{kind}-patch+{form}")
