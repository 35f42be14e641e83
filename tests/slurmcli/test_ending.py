"""How a command ends when its reader has seen enough, when Ctrl-C is pressed, and what it writes where no terminal is."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typing_extensions import override

from slurmcli import plugin
from slurmruntime.values import names

COMMAND = Path(sys.executable).with_name("kubectl-slurm")
PLAIN, BY_TYPER = ("queue", "-n", "team"), ("queue", "-nteam")
"""The same words, of which only the first are read without Typer."""
ESCAPE = "\x1b"
DEADLINE_S = 60
POD = {
    "metadata": {
        "name": "train",
        "namespace": "team",
        "uid": "u-1",
        "resourceVersion": "1",
        "creationTimestamp": "2026-11-23T18:00:00Z",
        "finalizers": [names.FINALIZER],
    },
    "spec": {
        "containers": [{"name": "main"}],
        "schedulerName": names.SCHEDULER_NAME,
        "schedulingGates": [{"name": names.GATE}],
    },
    "status": {"phase": "Pending"},
}


@dataclass(slots=True)
class ApiServer:
    """One that has a pod, or one that never answers."""

    kubeconfig: Path
    asked: threading.Event = field(default_factory=threading.Event)
    silent: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def env(self) -> Mapping[str, str]:
        """Of somebody who has no token for Slurm."""
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "LANG") if key in os.environ}
        return {**kept, "KUBECONFIG": str(self.kubeconfig)}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[ApiServer]:
    server = ApiServer(tmp_path / "kubeconfig")

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            server.asked.set()
            if server.silent.is_set():
                server.over.wait(DEADLINE_S)
                return
            items = [POD] if "/pods" in self.path else []
            body = json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{listening.server_port}"}}
        context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
        server.kubeconfig.write_text(
            json.dumps(
                {
                    "clusters": [cluster],
                    "contexts": [context],
                    "current-context": "x",
                    "users": [{"name": "u", "user": {}}],
                }
            )
        )
        try:
            yield server
        finally:
            server.over.set()
            listening.shutdown()
            thread.join()


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """A process in the background of a script ignores it, and so would the command that we start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_server_is_one(api: ApiServer) -> None:
    for words in (PLAIN, BY_TYPER):
        done = subprocess.run(
            [COMMAND, *words], env=dict(api.env), capture_output=True, text=True, check=True
        )
        assert "train" in done.stdout
        assert "" == done.stderr


@pytest.mark.parametrize("words", [PLAIN, BY_TYPER], ids=["plain", "typer"])
@pytest.mark.parametrize("form", ["table", "json", "yaml"])
def test_a_reader_that_has_seen_enough_sees_no_traceback(
    api: ApiServer, words: tuple[str, ...], form: str
) -> None:
    """`kubectl slurm queue | head -1`; here the reader has gone before the first byte."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [COMMAND, *words, "-o", form],
            env=dict(api.env),
            stdout=writing,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)

    assert (1, "") == (done.returncode, done.stderr)


@pytest.mark.usefixtures("ctrl_c")
@pytest.mark.parametrize("words", [PLAIN, BY_TYPER], ids=["plain", "typer"])
def test_ctrl_c_ends_a_command_that_waits(api: ApiServer, words: tuple[str, ...]) -> None:
    api.silent.set()
    with subprocess.Popen(
        [COMMAND, *words],
        env=dict(api.env),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert api.asked.wait(DEADLINE_S)
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=DEADLINE_S)

    assert plugin.INTERRUPTED == process.returncode
    assert "" == out
    assert "Traceback" not in said


def test_ctrl_c_while_modules_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(plugin, "import_module", interrupted)
    monkeypatch.setattr(sys, "argv", ["kubectl-slurm", *PLAIN])

    with pytest.raises(SystemExit) as ended:
        plugin.main()

    assert plugin.INTERRUPTED == ended.value.code


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("queue", "--bogus"), 2, "No such option: --bogus"),
        (("queue", "-o", "none"), 2, "Invalid value"),
        (("why",), 2, "Missing argument"),
        (("explain", "/nowhere"), 1, "No such file"),
        (("queue", "--help"), 0, "--all-namespaces"),
    ],
)
@pytest.mark.parametrize("environment", [{}, {"GITHUB_ACTIONS": "true"}, {"FORCE_COLOR": "1"}])
def test_where_no_terminal_is_only_text_is_written(
    api: ApiServer, words: tuple[str, ...], code: int, said: str, environment: Mapping[str, str]
) -> None:
    done = subprocess.run(
        [COMMAND, *words],
        env={**api.env, **environment},
        capture_output=True,
        text=True,
        check=False,
    )

    assert code == done.returncode
    assert said in done.stdout + done.stderr
    assert ESCAPE not in done.stdout + done.stderr
    assert "─" not in done.stderr
