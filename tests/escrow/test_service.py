"""What a process of ours knows of pods before it answers slurmctld's scripts."""

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.escrow import service
from bridge.kube.decode import PODS
from slurmruntime.kube.cache import Cache
from slurmruntime.kube.node_objects import NODES
from slurmruntime.kube.watch import Reflector
from slurmruntime.process.health import Health
from slurmruntime.process.liveness import Check

WATCHES = ("pods", "pods of the binder", "nodes")


def saying(why: str | None) -> Check:
    return lambda: why


@pytest.mark.parametrize("order", list(itertools.permutations(WATCHES)), ids=", ".join)
def test_one_that_has_just_started_knows_nothing_until_all_lists_are_there(
    order: Sequence[str],
) -> None:
    """Else a pod that is in none of them yet would hold nobody."""
    pods, nodes = Cache(PODS), Cache(NODES)
    filled: dict[str, Any] = dict(zip(WATCHES, (pods.share(), pods.share(), nodes), strict=True))
    program: Any = SimpleNamespace(health=Health())
    for name, cache in filled.items():
        watch: Reflector[Any] = Reflector(None, cache)  # type: ignore[arg-type]  # nothing is asked
        program.health.register(name, watch.check)

    for name in order:
        assert "not listed yet" in (service.blind(program) or "")
        filled[name].listed()
    assert service.blind(program) is None


@pytest.mark.parametrize("silent", WATCHES)
def test_one_whose_watch_is_silent_knows_nothing(silent: str) -> None:
    program: Any = SimpleNamespace(health=Health())
    for name in (*WATCHES, "other pods"):
        program.health.register(name, saying(None))
    assert service.blind(program) is None

    program.health = Health()
    for name in (*WATCHES, "other pods"):
        why = f"{name}: nothing heard for 241 s" if name == silent else None
        program.health.register(name, saying(why))
    assert f"{silent}: nothing heard for 241 s" == service.blind(program)
