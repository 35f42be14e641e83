"""A tenant that floods: a hundred hopeless things at once in a namespace of its own, and gone again seconds later."""

import contextlib
import random
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from sandbox.api import Api, ApiError
from sandbox.client import Sandbox
from slurmruntime.values import names
from slurmruntime.values.names import REQUEST_PREFIX
from tests.integration.worlds import Manifest, container

_AT_ONCE = 4
_LOOKS_EVERY_S = 2.0
_FAT = "x" * 60_000
_GATE = {"name": "example.test/later"}


class Flood:
    """What comes in one wave is all of one kind."""

    def __init__(self, sandbox: Sandbox, namespace: str, kubeconfig: Path | None = None) -> None:
        """kubeconfig: the tenant's; None: the administrator's, whom the API server holds back by no flow control."""
        self._sandbox = sandbox
        self._kubeconfig = kubeconfig or sandbox.kubeconfig
        self._pods = f"/api/v1/namespaces/{namespace}/pods"
        self._waves = 0

    def come(self, dice: random.Random, pods: int = 100) -> str:
        """Create a wave of pods; returns what they were. An API server that is away refuses some of them."""
        kind = dice.choice(tuple(KINDS))
        self._waves += 1
        wave = f"w{self._waves}"
        bodies = [KINDS[kind](f"{wave}-{number}") for number in range(pods)]
        with Api(self._kubeconfig) as tenant, ThreadPoolExecutor(_AT_ONCE) as pool:
            made = list(pool.map(lambda body: _created(tenant, self._pods, body), bodies))
        return f"{sum(made)} {kind}"

    def go(self) -> None:
        """Delete all of them; what is not heard goes with the next wave, or in the end."""
        with Api(self._kubeconfig) as tenant, contextlib.suppress(ApiError):
            tenant.delete(self._pods)

    def breaches(self, within_s: float) -> Sequence[str]:
        """What is left of it, once all is calm."""
        end_s = time.monotonic() + within_s
        while True:
            self.go()
            left = self._sandbox.admin.get(self._pods)["items"]
            if not left:
                return ()
            if time.monotonic() > end_s:
                first = left[0]["metadata"]["name"]
                return (f"{len(left)} pods of the flood are left, among them {first}",)
            time.sleep(_LOOKS_EVERY_S)


def _created(tenant: Api, path: str, body: Manifest) -> bool:
    try:
        tenant.create(path, body)
    except ApiError:
        return False
    return True


def _pod(name: str, notes: Mapping[str, str] | None = None, **spec: object) -> Manifest:
    metadata: Manifest = {"name": name, "annotations": dict(notes or {})}
    return {"metadata": metadata, "spec": {"containers": [container()], **spec}}


def _gated(name: str) -> Manifest:
    return _pod(name, schedulingGates=[_GATE])


def _hopeless(name: str) -> Manifest:
    return _pod(name, nodeSelector={"kubernetes.io/hostname": "nowhere"})


def _fat(name: str) -> Manifest:
    return _pod(name, {"example.test/fat": _FAT}, schedulingGates=[_GATE])


def _held(name: str) -> Manifest:
    return _pod(name, {f"{REQUEST_PREFIX}hold": "true"})


def _lonely(name: str) -> Manifest:
    """The only member of a group of fifty."""
    pod = _pod(name, {names.POD_GROUP_SIZE_ANNOTATION: "50"})
    pod["metadata"]["labels"] = {names.POD_GROUP_LABEL: name}
    return pod


KINDS: Mapping[str, Callable[[str], Manifest]] = {
    "pods with a gate of others": _gated,
    "pods that fit no node": _hopeless,
    "pods of 60 kB with a gate of others": _fat,
    "pods that are held in Slurm": _held,
    "gangs of fifty of which one pod exists": _lonely,
}
"""By what a person calls them."""
