"""Real servers for tests: sandboxes that die with the test run, and waiting for what they do."""

import asyncio
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import pytest

from sandbox import assets
from sandbox.api import ApiError
from sandbox.assembly import needed
from sandbox.assets import Absent
from sandbox.client import Sandbox
from sandbox.errors import SandboxError
from sandbox.options import Options

T = TypeVar("T")
DATA_PARSER = "TEST_DATA_PARSER"
"""The environment variable by which `make test-releases` gives slurmrestd a single data parser."""
SETTINGS = "TEST_SETTINGS"
"""The environment variable with settings for the bridge of every sandbox: placement.binder=extender …"""
SERVICES = ("webhook", "extender", "controllers")
"""Our programs, as the sandbox calls them."""
_POLL_S, _SLOWEST_POLL_S = 0.05, 0.25


@contextmanager
def state_folder() -> Iterator[Path]:
    """A folder for a sandbox: as root its servers run as other users, who cannot enter pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="slurm-bridge-test-"))
    folder.chmod(0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def running_sandbox(options: Options) -> Iterator[Sandbox]:
    """A sandbox of its own; it dies with the test run, even if that is killed.

    Without its programs the test is skipped only if nobody can expect them: SANDBOX_OFFLINE=1 forbids to fetch any.
    """
    options = replace(
        options,
        data_parser=os.environ.get(DATA_PARSER, ""),
        settings=(*os.environ.get(SETTINGS, "").split(), *options.settings),
    )
    absent = [
        str(a.reason) for a in assets.where(needed(options)).values() if isinstance(a, Absent)
    ]
    if absent and os.environ.get("SANDBOX_OFFLINE") == "1":
        pytest.skip("; ".join(absent))
    with state_folder() as folder, Sandbox.up(folder, options) as sandbox:
        yield sandbox


@contextmanager
def fresh_namespace(sandbox: Sandbox, *, labels: dict[str, str]) -> Iterator[str]:
    """A namespace whose pods can be created at once; it is deleted with all it holds, in the background."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    metadata = {"name": name, "labels": labels}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    sandbox.admin.create("/api/v1/namespaces", body)

    def account_exists() -> bool:
        try:
            return bool(sandbox.admin.get(f"/api/v1/namespaces/{name}/serviceaccounts/default"))
        except ApiError:
            return False

    try:
        wait_until(account_exists, 60, sandbox=sandbox)
        yield name
    finally:
        sandbox.admin.delete(f"/api/v1/namespaces/{name}")


def is_offline() -> bool:
    """Told so, or on a machine without any route (its table has only a head line)."""
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    return bool(os.environ.get("SANDBOX_OFFLINE")) or not routes


def wait_until(
    condition: Callable[[], T], deadline_s: float, *, sandbox: Sandbox | None = None
) -> T:
    """The first true answer of `condition`; fails with its last answer and the ends of the sandbox's logs."""
    began_s = time.monotonic()
    while not (answer := condition()):
        waited_s = time.monotonic() - began_s
        if waited_s > deadline_s:
            raise AssertionError(_complaint(answer, deadline_s, sandbox))
        time.sleep(_pause_s(waited_s))
    return answer


async def until(
    condition: Callable[[], T], deadline_s: float, *, sandbox: Sandbox | None = None
) -> T:
    """`wait_until` for a test with an event loop of its own to keep turning."""
    began_s = time.monotonic()
    while not (answer := condition()):
        waited_s = time.monotonic() - began_s
        if waited_s > deadline_s:
            raise AssertionError(_complaint(answer, deadline_s, sandbox))
        await asyncio.sleep(_pause_s(waited_s))
    return answer


def _pause_s(waited_s: float) -> float:
    """A twentieth of what was waited: many conditions run a command, which takes the processor from those it waits for."""
    return min(max(_POLL_S, waited_s / 20), _SLOWEST_POLL_S)


def _complaint(answer: object, deadline_s: float, sandbox: Sandbox | None) -> str:
    logs = f"\n{sandbox.log_tails()}{_slurm_shows(sandbox)}" if sandbox else ""
    return f"still {answer!r} after {deadline_s} s{logs}"


def _slurm_shows(sandbox: Sandbox) -> str:
    """Jobs and nodes: who holds what the test waits for, and which node takes nothing."""
    if not sandbox.instance.options.slurm:
        return ""
    shown = ""
    for command in (
        ("squeue", "--all", "-o", "%i %j %u %T %N %r"),
        ("sinfo", "--Node", "--long"),
        ("sinfo", "--list-reasons"),
    ):
        try:
            answer = sandbox.run(*command, timeout_s=10)
        except (SandboxError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
            answer = str(error)  # users may give jobs any name
        shown += f"\n--- {command[0]}\n{answer.rstrip()}"
    return shown
