"""What stands between tini and slurmctld, with a real slurmctld: who takes over, who goes on, and when it ends."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from sandbox import identity
from sandbox.client import Sandbox
from sandbox.image import slurm
from sandbox.options import Options
from tests.servers import running_sandbox, wait_until

pytestmark = pytest.mark.slow

NOTIFIED = slurm.FOLDER / "entrypoints" / "notified"
PERL = "/usr/bin/perl"
ENDS_S = 30


def words(process: Path) -> tuple[str, ...]:
    """Return the command line of a process; empty if it has ended."""
    try:
        return tuple((process / "cmdline").read_text().split("\0")[:-1])
    except OSError:
        return ()


def started(process: Path) -> int:
    """Return when it was started, in ticks: proc_pid_stat(5)."""
    return int((process / "stat").read_text().rpartition(")")[2].split()[19])


class Notified:
    """It, with the slurmctld of a sandbox, which has none of its own meanwhile."""

    def __init__(self, sandbox: Sandbox, replaced: Path) -> None:
        self.sandbox = sandbox
        self.conf = sandbox.slurm_conf
        folder = self.conf.parent / "run"
        account = identity.servers()
        self.log = folder / "notified.log"
        argv = words(replaced)
        assert argv[1] == "-D", argv
        environment = (replaced / "environ").read_bytes()
        sandbox.stop("slurmctld")
        self.argv = (argv[0], "--systemd", *argv[2:])
        # Its text, since the account may not enter this checkout; and `env`, since what is preloaded fits slurmctld only.
        command = (PERL, "-e", NOTIFIED.read_text(), str(folder / "notify"), "env")
        variables = (each.decode() for each in environment.split(b"\0") if each)
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                (*command, *variables, *self.argv),
                user=account.uid,
                group=account.gid,
                extra_groups=[],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def end(self) -> None:
        self.process.terminate()
        self.process.wait(ENDS_S)

    def answers(self) -> bool:
        """Whether slurmctld answers."""
        return self._scontrol("ping", conf=self.conf) == 0

    def daemon(self) -> Path:
        """Where the kernel tells of the process that is slurmctld now: the one that was started last."""
        found = [each for each in Path("/proc").glob("[0-9]*") if words(each) == self.argv]
        return max(found, key=started)

    def reconfigure(self, text: str, *, valid: Path) -> int:
        """Reconfigure with this slurm.conf; scontrol itself reads a valid one. Return its exit code."""
        before = self.conf.read_text()
        self.conf.write_text(text)
        code = self._scontrol("reconfigure", conf=valid)
        if code:
            self.conf.write_text(before)
        return code

    def _scontrol(self, word: str, *, conf: Path) -> int:
        done = subprocess.run(
            (str(self.sandbox.instance.bin / "scontrol"), word),
            env={**self.sandbox.env, "SLURM_CONF": str(conf)},
            check=False,
            timeout=ENDS_S,
        )
        return done.returncode

    def successor(self, first: Path) -> Path:
        """Wait until another process is slurmctld; return it."""
        wait_until(lambda: self.daemon() != first, ENDS_S)
        return self.daemon()


@pytest.fixture
def notified() -> Iterator[Notified]:
    with running_sandbox(Options(kubernetes=False, bridge=False, nodes=1)) as sandbox:
        it = Notified(sandbox, Path(f"/proc/{sandbox.status()['slurmctld'].pid}"))
        try:
            wait_until(it.answers, ENDS_S)
            yield it
        finally:
            it.end()


def held_job(sandbox: Sandbox) -> str:
    return sandbox.run("sbatch", "--parsable", "--hold", "--wrap", "true").strip()


def test_a_reconfigure_hands_over_and_a_broken_one_changes_nothing(
    notified: Notified, tmp_path: Path
) -> None:
    sandbox, good = notified.sandbox, notified.conf.read_text()
    valid = tmp_path / "slurm.conf"
    valid.write_text(good)
    job = held_job(sandbox)
    first = notified.daemon()

    for broken in (
        "NoSuchParameter=1\n",
        "TopologyPlugin=topology/nonsense\n",
        "PartitionName=typo Nodes=nowhere\n",
    ):
        assert notified.reconfigure(good + broken, valid=valid) != 0
        assert (first, None) == (notified.daemon(), notified.process.poll())
        assert notified.answers()

    assert notified.reconfigure(good + "PartitionName=more Nodes=ALL\n", valid=valid) == 0
    second = notified.successor(first)
    wait_until(lambda: not first.exists(), ENDS_S)
    assert notified.process.poll() is None
    assert "PartitionName=more" in sandbox.run("scontrol", "show", "partition", "more")
    assert job in sandbox.run("squeue", "--noheader", "--format", "%i").split()

    # It passes on what it is told, also to a process that is not its child.
    notified.process.send_signal(signal.SIGTERM)
    assert notified.process.wait(ENDS_S) == 0
    assert not second.exists()


def test_a_daemon_that_took_over_and_dies_ends_it(notified: Notified) -> None:
    first = notified.daemon()
    assert notified.reconfigure(notified.conf.read_text(), valid=notified.conf) == 0
    second = notified.successor(first)

    os.kill(int(second.name), signal.SIGKILL)

    assert notified.process.wait(ENDS_S) == 1


@pytest.mark.parametrize(("script", "code"), [("exit 7", 7), ("kill -KILL $$", 128 + 9)])
def test_it_ends_as_its_daemon_ends(tmp_path: Path, script: str, code: int) -> None:
    done = subprocess.run(
        (PERL, NOTIFIED, "notify", "sh", "-c", script), cwd=tmp_path, check=False, timeout=ENDS_S
    )

    assert code == done.returncode


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = subprocess.run(
        (PERL, NOTIFIED, "notify", "no-such-daemon"),
        cwd=tmp_path,
        check=False,
        capture_output=True,
        text=True,
        timeout=ENDS_S,
    )

    assert done.returncode != 0
    assert "notified: no-such-daemon: No such file or directory" in done.stderr
