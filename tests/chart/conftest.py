"""Helm, and the chart with its default values."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import assets
from tests.chart import rendering
from tests.chart.rendering import Rendered

Render = Callable[..., Rendered]


@pytest.fixture(scope="session")
def helm() -> Path:
    with assets.shown(sys.stderr) as report:
        return assets.resolve(assets.AssetName.HELM, report=report).bin / "helm"


@pytest.fixture(scope="session")
def render(helm: Path) -> Render:
    return functools.partial(rendering.render, helm)


@pytest.fixture(scope="session")
def chart(render: Render) -> Rendered:
    return render()
