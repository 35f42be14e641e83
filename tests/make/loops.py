"""The event loops that tests of asynchronous parts run on; a `conftest.py` imports them."""

import asyncio
from collections.abc import Callable, Mapping

import pytest
import uvloop


def pytest_asyncio_loop_factories(
    config: pytest.Config, item: pytest.Item
) -> Mapping[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Production runs on uvloop, embedded use and tests on asyncio's own loop: both must do."""
    return {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
