"""An entry point in a folder that stands for the image, its programs replaced by ones that note how they were called."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

from sandbox.image import slurm
from tests.servers import wait_until

PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "slurmrestd", "sackd", "sshd", "sssd", "ssh-keygen")
NOTES = (
    '#!/bin/sh\nfor each; do printf "%s\\n" "$each"; done > "$0.draft"\nmv "$0.draft" "$0.called"\n'
)
MACHINE = (
    'echo "NodeName=n CPUs=16 Boards=1 SocketsPerBoard=2 CoresPerSocket=4 ThreadsPerCore=2 RealMemory=64000"\n'
    'echo "UpTime=0-00:00:01"\n'
)
ENDS_S = 30
CONF = ("-Z", "--conf-server", "site:6817", "--conf")


class Entrypoint:
    """One of them, in a folder of its own that stands for the image."""

    def __init__(self, root: Path, daemon: str) -> None:
        self.root = root
        self.bin = root / "bin"
        self._started: list[subprocess.Popen[bytes]] = []
        self._errors = root / "errors"
        for folder in ("bin", "lib/slurm", "etc/ssh", "etc/pam.d", "etc/sssd"):
            (root / folder).mkdir(parents=True)
        library = (slurm.FOLDER / "entrypoints" / "words.bash").read_text()
        (root / "lib" / "slurm" / "words.bash").write_text(library)
        # The real one has a test of its own, with a real slurmctld.
        (root / "lib" / "slurm" / "notified").write_text('#!/bin/sh\nshift\nexec "$@"\n')
        (root / "lib" / "slurm" / "notified").chmod(0o755)
        text = (slurm.FOLDER / "entrypoints" / daemon).read_text()
        for path in ("/etc/", "/run/", "/var/"):
            text = text.replace(f" {path}", f" {root}{path}")
        self.write("entrypoint", text.replace("/usr/sbin/", f"{self.bin}/"))
        for program in PROGRAMS:
            self.write(program, NOTES)

    def write(self, program: str, text: str) -> None:
        (self.bin / program).write_text(text)
        (self.bin / program).chmod(0o755)

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run it until its own program ends; what it keeps beside it goes on until the test ends."""
        code = self.start(*arguments, **environment).wait(ENDS_S)
        return subprocess.CompletedProcess(arguments, code, "", self.errors)

    def start(self, *arguments: str, **environment: str) -> subprocess.Popen[bytes]:
        """Start it; it ends with the test at the latest."""
        with self._errors.open("w") as stream:
            process = subprocess.Popen(
                (self.bin / "entrypoint", *arguments),
                env={"PATH": f"{self.bin}:{os.environ['PATH']}", **environment},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self._started.append(process)
        return process

    @property
    def errors(self) -> str:
        """What it and its programs have said since it was started last."""
        return self._errors.read_text()

    def end(self) -> None:
        """End what was started, and what was kept."""
        for process in self._started:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(ENDS_S)

    def called(self, program: str) -> list[str] | None:
        """How a program was called; None if it was not."""
        note = self.bin / f"{program}.called"
        return note.read_text().splitlines() if note.exists() else None

    def is_kept(self, program: str) -> list[str]:
        """Wait until a program beside the entry point's own was called; return its arguments."""
        wait_until(lambda: self.called(program) is not None, ENDS_S)
        return self.called(program) or []

    def on(self, machine: str) -> None:
        """Let slurmd tell of this machine."""
        self.write(
            "slurmd", f'{NOTES.splitlines()[0]}\nif [ "$*" = -C ]; then\n{machine}exit\nfi\n{NOTES}'
        )
