"""`make audit DATABASE=all.zip`: check the locked Python packages for known vulnerabilities, without a network.

pip-audit asks a service of the form of OSV's. This is one, on the loopback interface, that answers from a file.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from typing_extensions import override

from audit import advisories
from audit.advisories import Advisories, UnusableFile
from slurmruntime.process.clock import SystemClock

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.txt", "requirements-build.txt", "requirements-dev.txt")
UNUSABLE = 2
"""The exit code if the file says nothing about today; pip-audit's own is 1 if it has found something."""


def main(arguments: Sequence[str]) -> int:
    """Audit our locks, or those that are named, and return the exit code."""
    if not arguments:
        sys.stderr.write(
            "name a file of advisories: make audit DATABASE=all.zip (docs/releasing.md)\n"
        )
        return UNUSABLE
    file, *locks = map(Path, arguments)
    try:
        known = advisories.read(file, SystemClock().now())
    except UnusableFile as unusable:
        sys.stderr.write(f"{unusable}\n")
        return UNUSABLE
    sys.stdout.write(f"advisories up to {known.newest:%Y-%m-%d}\n")
    sys.stdout.flush()
    with served(known) as address, tempfile.TemporaryDirectory() as cache:
        return audit(locks or [ROOT / lock for lock in LOCKS], address, Path(cache))


def audit(locks: Sequence[Path], address: str, cache: Path) -> int:
    """Run pip-audit over locks with hashes; nothing is resolved or installed."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes", "--strict"]
    command += [f"--requirement={lock}" for lock in locks]
    command += ["--vulnerability-service=osv", f"--osv-url={address}", f"--cache-dir={cache}"]
    command += ["--progress-spinner=off", "--aliases=on"]
    environment = {**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"}
    return subprocess.run(command, env=environment, check=False).returncode


@contextmanager
def served(known: Advisories) -> Iterator[str]:
    """Answer OSV's query from these advisories; yields the address."""

    class Query(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers["Content-Length"])
            query = json.loads(self.rfile.read(length))
            answer = {"vulns": known.of(query["package"]["name"], query["version"])}
            body = json.dumps(answer if answer["vulns"] else {}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        @override
        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: pip-audit reports."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Query) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1/query"
        finally:
            server.shutdown()
            thread.join()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
