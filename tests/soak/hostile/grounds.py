"""Where the hostile are, and what every actor does with it."""

import random
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from sandbox.api import Api, ApiError
from sandbox.client import Sandbox

_AT_ONCE = 4
MALLORY = "mallory"
"""She has the role `edit` in her namespace, and may create SlurmJobs there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """What an actor's process is told."""

    root: Path
    """The sandbox's folder."""
    namespace: str
    """Mallory's."""
    exporter: str
    """URL of slurm-exporter."""
    seed: int
    """Of all that is drawn."""


class Grounds:
    """One sandbox as an actor's process sees it."""

    def __init__(self, site: Site, dice: random.Random) -> None:
        self.sandbox = Sandbox(site.root)
        self.namespace = site.namespace
        self.exporter = site.exporter
        self.dice = dice

    @property
    def pods(self) -> str:
        """Path of mallory's pods."""
        return f"/api/v1/namespaces/{self.namespace}/pods"

    @property
    def slurm_jobs(self) -> str:
        """Path of mallory's SlurmJobs."""
        return f"/apis/slurm-bridge.dev/v1alpha1/namespaces/{self.namespace}/slurmjobs"

    @property
    def config_maps(self) -> str:
        """Path of mallory's ConfigMaps."""
        return f"/api/v1/namespaces/{self.namespace}/configmaps"


def invite(sandbox: Sandbox, namespace: str) -> None:
    """Give mallory her rights."""
    where = ("--namespace", namespace)
    sandbox.kubectl(
        "create", "rolebinding", "edit", "--clusterrole=edit", f"--user={MALLORY}", *where
    )
    sandbox.kubectl(
        *("create", "role", "slurmjobs", "--verb=*", "--resource=slurmjobs.slurm-bridge.dev"),
        *where,
    )
    sandbox.kubectl(
        *("create", "rolebinding", "slurmjobs", "--role=slurmjobs", f"--user={MALLORY}"), *where
    )


def at_once(tasks: Iterable[Callable[[], object]], workers: int = _AT_ONCE) -> None:
    """Do all of them, some at a time; a refusal by an API server is what may be expected."""

    def tried(task: Callable[[], object]) -> None:
        try:
            task()
        except ApiError:
            return

    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(tried, tasks))


def as_mallory(sandbox: Sandbox) -> Api:
    """Return a client with her credentials."""
    return Api(sandbox.user_kubeconfig(MALLORY))
