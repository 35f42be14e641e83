"""Prometheus and promtool."""

import sys
from pathlib import Path

import pytest

from sandbox import assets


@pytest.fixture(scope="session")
def prometheus() -> Path:
    """The folder with both programs."""
    with assets.shown(sys.stderr) as report:
        return assets.resolve(assets.AssetName.PROMETHEUS, report=report).bin
