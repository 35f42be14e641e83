"""Which tests run after one another, so that few sandboxes are started and none runs for nobody.

A sandbox takes half a minute of a processor to start and a tenth of one while nobody uses it. So files that share a
sandbox run in a row, and it goes down as soon as its worker comes to a file that does without it. What a file shares is
read from its fixtures: those of the whole session that yield a `Sandbox`. A new test has nothing to declare.
"""

from collections import Counter
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import pytest
from _pytest.fixtures import FixtureDef, SubRequest
from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # it has none

from sandbox.client import Sandbox

Shared = FixtureDef[Sandbox]

_WHOLE = ("tests/realnodes/", "tests/workloads/")
"""Folders that one worker takes whole: nobody else uses their sandbox, which is a large one."""
_used: dict[Path, set[Shared]] = {}
"""By file."""
_up: dict[Shared, SubRequest] = {}
"""What this worker has started."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest first, and last, to fill the gaps, what needs no sandbox.

    These are folders that go to a worker whole, files with sandboxes of their own, files that share one.
    """
    _used.clear()
    for item in items:
        _used.setdefault(item.path, set()).update(_shared(item))
    demand = Counter(fixture.argname for used in _used.values() for fixture in used)
    by_demand = sorted(demand, key=lambda name: (-demand[name], name))  # the same on each worker
    place = {name: at for at, name in enumerate(by_demand)}

    def key(item: pytest.Item) -> tuple[int, list[int]]:
        if item.nodeid.startswith(_WHOLE):
            return 0, []
        if used := _used[item.path]:
            return 2, sorted(place[fixture.argname] for fixture in used)
        starts_one = isinstance(item, pytest.Function) and hasattr(item.module, "running_sandbox")
        return 1 if starts_one else 3, []

    items.sort(key=key)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Shared, request: SubRequest) -> Iterator[None]:
    if _is_shared(fixturedef):
        _up[fixturedef] = request
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """End the sandboxes that the next file does without."""
    yield
    if nextitem is None or nextitem.path == item.path:
        return
    for fixture in [fixture for fixture in _up if fixture not in _used[nextitem.path]]:
        fixture.finish(_up.pop(fixture))


class ByFile(LoadFileScheduling):  # type: ignore[misc]  # as above
    """Hands out files in the order above; some folders whole."""

    def _split_scope(self, nodeid: str) -> str:
        whole = next((folder for folder in _WHOLE if nodeid.startswith(folder)), None)
        return whole or super()._split_scope(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> ByFile | None:
    if config.getoption("dist") != "loadfile":
        return None
    config.option.loadscopereorder = False
    return ByFile(config, log)


def _shared(item: pytest.Item) -> set[Shared]:
    if not isinstance(item, pytest.Function):
        return set()
    found = item._fixtureinfo.name2fixturedefs
    return {
        found[name][-1]
        for name in item.fixturenames
        if name in found and _is_shared(found[name][-1])
    }


def _is_shared(fixture: Shared) -> bool:
    return (
        fixture.scope == "session"
        and signature(fixture.func).return_annotation == Iterator[Sandbox]
    )
