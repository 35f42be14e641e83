"""The commands as people run them: with the environment that the sandbox gives a shell."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from sandbox.client import Sandbox
from slurmcli import plugin

Run = Callable[..., Result]

EXPENSIVE = (
    "cryptography",
    "fastapi",
    "httpx",
    "kubernetes_asyncio",
    "pydantic",
    "rich",
    "sandbox",
    "slurmclient.models",
    "slurmclient.resources",
    "slurmjobs",
    "structlog",
    "uvicorn",
)
"""Modules that a short command does without: what one costs is nearly all importing."""


@pytest.fixture
def run(full_sandbox: Sandbox) -> Run:
    """Run `kubectl slurm …`; Slurm's side can be left out."""

    def call(*arguments: str, environment: Mapping[str, str | None] | None = None) -> Result:
        env = {**full_sandbox.env, **(environment or {})}
        return CliRunner().invoke(plugin.app(), arguments, env=env)

    return call


@pytest.fixture
def ask(run: Run) -> Callable[..., Any]:
    """The same for scripts: what `-o json` prints."""

    def call(*arguments: str) -> Any:
        done = run(*arguments, "-o", "json")
        return json.loads(done.stdout)

    return call
