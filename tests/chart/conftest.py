"""Helm, the chart with its default values, and a cluster with its policies in force."""

import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sandbox import assets
from sandbox.client import Sandbox
from tests.chart import rendering
from tests.chart.policed import Cluster, policed
from tests.chart.rendering import Rendered

Render = Callable[..., Rendered]


@pytest.fixture(scope="session")
def helm() -> Path:
    with assets.shown(sys.stderr) as report:
        return assets.resolve(assets.AssetName.HELM, report=report).bin / "helm"


@pytest.fixture(scope="session")
def kubeconform() -> assets.Asset:
    """The program, and beside it the CRDs of the Prometheus operator and of cert-manager."""
    with assets.shown(sys.stderr) as report:
        return assets.resolve(assets.AssetName.KUBECONFORM, report=report)


@pytest.fixture(scope="session")
def render(helm: Path) -> Render:
    return functools.partial(rendering.render, helm)


@pytest.fixture(scope="session")
def chart(render: Render) -> Rendered:
    return render()


@pytest.fixture(scope="module")
def cluster(control_plane: Sandbox, helm: Path) -> Iterator[Cluster]:
    with policed(control_plane, helm) as cluster:
        yield cluster
