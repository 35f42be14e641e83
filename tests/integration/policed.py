"""The sandbox under a policy of a test's own, and people with their own credentials."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import yaml

from sandbox.api import Api
from sandbox.client import Sandbox
from tests.servers import wait_until

READERS = ("webhook", "extender")
PATIENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class PolicyFiles:
    """The settings files of the two programs that go by the policy."""

    sandbox: Sandbox

    def file(self, name: str) -> Path:
        """One program's."""
        return self.sandbox.instance.bridge / name / "config.yaml"

    def metric(self, name: str, metric: str) -> float:
        """A number without labels that one program exports."""
        url = self.sandbox.instance.url(f"{name}-health")
        lines = httpx.get(f"{url}/metrics", trust_env=False).text.splitlines()
        found = [line.split()[1] for line in lines if line.startswith(f"{metric} ")]
        return float(found[0])

    def put(self, policy: Mapping[str, Any]) -> None:
        """Have this policy, and wait until both programs go by it."""
        before = {name: self.loaded(name) for name in READERS}
        for name in READERS:
            settings = yaml.safe_load(self.file(name).read_text())
            new = self.file(name).with_suffix(".new")
            new.write_text(yaml.safe_dump({**settings, "policy": dict(policy)}))
            new.replace(self.file(name))
        for name in READERS:
            self._wait(partial(self._has_loaded_since, name, before[name]))

    def await_current(self, name: str, *, is_current: bool) -> None:
        """Wait until a program goes by what its file says, or has noticed that it cannot."""
        self._wait(lambda: self.metric(name, "slurm_bridge_policy_is_current") == is_current)

    def loaded(self, name: str) -> float:
        """How often one program has taken a policy from its file."""
        return self.metric(name, 'slurm_bridge_policy_reloads_total{outcome="loaded"}')

    def _has_loaded_since(self, name: str, before: float) -> bool:
        return self.loaded(name) > before

    def _wait(self, is_so: Callable[[], bool]) -> None:
        wait_until(is_so, PATIENCE_S, sandbox=self.sandbox)


@contextmanager
def policed(sandbox: Sandbox, policy: Mapping[str, Any]) -> Iterator[PolicyFiles]:
    """This policy holds, without any restart; in the end the old one does."""
    files = PolicyFiles(sandbox)
    files.put(policy)
    try:
        yield files
    finally:
        files.put({})


def person(sandbox: Sandbox, namespace: str, user: str, *groups: str) -> Api:
    """An ordinary user who may do in a namespace what ordinary users do, by a certificate."""
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}/rolebindings"
    sandbox.admin.create(
        path,
        {
            "metadata": {"name": user.partition("@")[0]},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": "edit",
            },
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        },
    )
    return Api(sandbox.user_kubeconfig(user, *groups))
