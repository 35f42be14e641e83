"""What happens to all Slurms of pods at once, because their nodes, API server and operator are the same."""

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from sandbox.client import Sandbox

_AWAY_S = (1.0, 15.0)


class SharedWorld:
    """Lets one thing happen at a time, and none while somebody kills what must not be killed in the midst of it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._lock = threading.Lock()
        self.nodes = sandbox.instance.options.real_node_names

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Nothing happens to all meanwhile."""
        with self._lock:
            yield

    def cordon(self, dice: random.Random) -> None:
        """Cordon a node, or take that back."""
        self._set_cordon(dice.choice(self.nodes), is_cordoned=dice.random() < 0.6)

    def uncordon_all(self) -> None:
        """Take all of that back."""
        for node in self.nodes:
            self._set_cordon(node, is_cordoned=False)

    def kill_the_operator(self) -> None:
        """It is started again."""
        with self.quiet():
            self._sandbox.restart("operator", signal="KILL", wait=False)

    def kill_a_kubelet(self, dice: random.Random) -> None:
        """Its node starts it again."""
        with self.quiet():
            self._sandbox.end_daemon(dice.choice(self.nodes), "kubelet")

    def the_api_is_away(self, dice: random.Random) -> None:
        """It stands still for a while."""
        with self.quiet():
            self._sandbox.pause("apiserver")
            try:
                time.sleep(dice.uniform(*_AWAY_S))
            finally:
                self._sandbox.resume("apiserver")

    def _set_cordon(self, node: str, *, is_cordoned: bool) -> None:
        patch = {"spec": {"unschedulable": is_cordoned}}
        self._sandbox.admin.patch(f"/api/v1/nodes/{node}", patch)
