"""What the entry points make of arguments and environment: run with bash, their programs replaced by ones that note how they were called."""

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

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
        self._groups: list[int] = []
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
        errors = self.root / "errors"
        with errors.open("w") as stream:
            process = subprocess.Popen(
                (self.bin / "entrypoint", *arguments),
                env={"PATH": f"{self.bin}:{os.environ['PATH']}", **environment},
                stdin=subprocess.DEVNULL,
                stdout=stream,
                stderr=stream,
                start_new_session=True,
            )
        self._groups.append(process.pid)
        code = process.wait(ENDS_S)
        return subprocess.CompletedProcess(arguments, code, "", errors.read_text())

    def end(self) -> None:
        """End what was kept."""
        for group in self._groups:
            try:
                os.killpg(group, signal.SIGKILL)
            except ProcessLookupError:
                continue

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


@pytest.fixture
def entrypoint(tmp_path: Path) -> Iterator[Callable[[str], Entrypoint]]:
    made: list[Entrypoint] = []

    def make(daemon: str) -> Entrypoint:
        made.append(Entrypoint(tmp_path / daemon, daemon))
        return made[-1]

    yield make
    for each in made:
        each.end()


Make = Callable[[str], Entrypoint]


@pytest.mark.parametrize(("daemon", "first"), [("slurmctld", "--systemd"), ("slurmd", "-D")])
def test_options_and_arguments_are_words_as_in_a_shell(
    entrypoint: Make, daemon: str, first: str
) -> None:
    it = entrypoint(daemon)
    options = {f"{daemon.upper()}_OPTIONS": "-v  -L 'a b'"}

    assert 0 == it.run("--conf", "'Features=x y'", '-a"b c"', r"d\ e", **options).returncode
    expected = [first, "-v", "-L", "a b", "--conf", "Features=x y", "-ab c", "d e"]
    assert expected == it.called(daemon)


def test_nothing_in_an_option_is_run_or_expanded(entrypoint: Make, tmp_path: Path) -> None:
    it = entrypoint("slurmctld")
    options = f"$(touch {tmp_path}/run) `touch {tmp_path}/run` $HOME * ;"

    it.run("-v", SLURMCTLD_OPTIONS=options)

    assert ["--systemd", *options.split(), "-v"] == it.called("slurmctld")
    assert not (tmp_path / "run").exists()


def test_slurmctld_starts_where_nothing_can_be_written(entrypoint: Make) -> None:
    it = entrypoint("slurmctld")
    # Root may write in any folder, but for those of the kernel.
    text = (it.bin / "entrypoint").read_text()
    (it.bin / "entrypoint").write_text(text.replace(f"{it.root}/run/slurmctld", "/proc/self"))

    done = it.run("-V")

    assert (0, ["-D", "-V"]) == (done.returncode, it.called("slurmctld"))
    assert "nothing can be written" in done.stderr


SAVED_NOTHING = ("clustername", "job_state")


@pytest.mark.parametrize(
    ("site", "saved", "stays"),
    [
        ((1, "slurmdbd"), SAVED_NOTHING, False),
        ((1, "slurmdbd"), (*SAVED_NOTHING, "assoc_usage"), True),
        ((1, "slurmdbd"), (*SAVED_NOTHING, "assoc_usage.old"), True),
        ((2, "slurmdbd"), SAVED_NOTHING, True),
        ((1, "none"), SAVED_NOTHING, True),
    ],
)
def test_slurmctld_that_was_killed_before_it_saved_association_usage_starts_again(
    entrypoint: Make,
    tmp_path: Path,
    site: tuple[int, str],
    saved: tuple[str, ...],
    stays: bool,
) -> None:
    it = entrypoint("slurmctld")
    hosts, accounting = site
    state = tmp_path / "state"
    state.mkdir()
    for name in saved:
        (state / name).touch()
    lines = [f"SlurmctldHost=host-{number}" for number in range(hosts)]
    lines += [
        f"StateSaveLocation={state}",
        f"AccountingStorageType=accounting_storage/{accounting}",
    ]
    (tmp_path / "slurm.conf").write_text("\n".join(lines) + "\n")

    done = it.run(SLURM_CONF=str(tmp_path / "slurm.conf"))

    assert (0, ["--systemd"]) == (done.returncode, it.called("slurmctld"))
    left = set(saved) if stays else set(saved) - {"clustername"}
    assert left == {each.name for each in state.iterdir()}
    assert ("as for the first time" in done.stderr) is not stays


@pytest.mark.parametrize("daemon", ["slurmctld", "slurmd", "slurmdbd", "slurmrestd", "login"])
def test_an_unmatched_quote_is_told_and_nothing_starts(entrypoint: Make, daemon: str) -> None:
    it = entrypoint(daemon)
    variable = "SACKD" if daemon == "login" else daemon.upper()

    done = it.run(**{f"{variable}_OPTIONS": "-L 'a b"})

    assert 64 == done.returncode
    assert "expected options whose quotes match, found: -L 'a b" in done.stderr
    assert not list(it.bin.glob("*.called"))


@pytest.mark.parametrize(("daemon", "first"), [("slurmdbd", ["-D"]), ("slurmrestd", [])])
def test_others_take_their_arguments_as_they_are(
    entrypoint: Make, daemon: str, first: list[str]
) -> None:
    it = entrypoint(daemon)

    it.run("-s", "it's one", "0.0.0.0:6820", **{f"{daemon.upper()}_OPTIONS": "-v -f 'a b'"})

    assert [*first, "-v", "-f", "a b", "-s", "it's one", "0.0.0.0:6820"] == it.called(daemon)


@pytest.mark.parametrize(
    ("environment", "said", "added"),
    [
        pytest.param({}, "Features=x", "", id="nothing-is-known-of-the-pod"),
        pytest.param({"POD_CPUS": "0", "POD_MEMORY": "0"}, "Features=x", "", id="no-limits"),
        pytest.param({"POD_CPUS": "4"}, "Features=x", " CoreSpecCount=6", id="two-cores-of-eight"),
        pytest.param({"POD_CPUS": "1"}, "Features=x", " CoreSpecCount=7", id="one-core-is-left"),
        pytest.param({"POD_CPUS": "16"}, "Features=x", "", id="all-cores"),
        pytest.param({"POD_CPUS": "99"}, "Features=x", "", id="more-than-there-are"),
        pytest.param({"POD_CPUS": "4"}, "corespeccount=2", "", id="the-user-says-cores"),
        pytest.param({"POD_CPUS": "4"}, "CPUs=2", "", id="the-user-says-cpus"),
        pytest.param({"POD_MEMORY": "4000"}, "Features=x", " MemSpecLimit=60000", id="memory"),
        pytest.param({"POD_MEMORY": "64000"}, "Features=x", "", id="all-memory"),
        pytest.param(
            {"POD_MEMORY": "4000"}, "RealMemory=5000", " MemSpecLimit=1000", id="the-users-memory"
        ),
        pytest.param({"POD_MEMORY": "4000"}, "MemSpecLimit=7", "", id="the-user-says-the-limit"),
        pytest.param({"POD_TOPOLOGY": "t:a"}, "Features=x", " Topology=t:a", id="topology"),
        pytest.param({"POD_TOPOLOGY": "t:a"}, "Topology=t:b", "", id="the-user-says-topology"),
        pytest.param(
            {"POD_CPUS": "4", "POD_MEMORY": "4000", "POD_TOPOLOGY": "t:a"},
            "Features=x",
            " CoreSpecCount=6 MemSpecLimit=60000 Topology=t:a",
            id="all-three",
        ),
    ],
)
def test_what_the_pod_has_becomes_what_slurmd_says(
    entrypoint: Make, environment: dict[str, str], said: str, added: str
) -> None:
    it = entrypoint("slurmd")
    it.on(MACHINE)

    assert 0 == it.run(*CONF, f"'{said}'", **environment).returncode
    assert ["-D", *CONF, f"{said}{added}"] == it.called("slurmd")


def test_without_a_conf_there_is_one_and_each_form_is_known(entrypoint: Make) -> None:
    it = entrypoint("slurmd")

    it.run("-Z", POD_TOPOLOGY="t:a")
    assert ["-D", "-Z", "--conf", "Topology=t:a"] == it.called("slurmd")
    it.run("--conf='Features=x'", POD_TOPOLOGY="t:a")
    assert ["-D", "--conf=Features=x Topology=t:a"] == it.called("slurmd")


def test_a_second_container_of_a_pod_starts_when_slurmctld_misses_the_jobs_of_the_first(
    entrypoint: Make,
) -> None:
    it = entrypoint("slurmd")
    it.write("sleep", NOTES)

    it.run("-Z")
    assert it.called("sleep") is None
    done = it.run("-Z")
    assert ["21"] == it.called("sleep")
    assert "slurmd starts in 21 s" in done.stderr
    assert ["-D", "-Z"] == it.called("slurmd")
    it.run("-Z", RESTART_PAUSE_S="40")
    assert ["40"] == it.called("sleep")


def test_what_is_no_number_is_told(entrypoint: Make) -> None:
    it = entrypoint("slurmd")

    done = it.run(POD_CPUS="1500m")

    assert 64 == done.returncode
    assert "expected a whole number in POD_CPUS, found 1500m" in done.stderr
    assert it.called("slurmd") is None


def test_a_worker_has_sshd_and_sssd_only_if_they_are_configured(entrypoint: Make) -> None:
    it = entrypoint("slurmd")
    pam = it.root / "etc" / "pam.d" / "sshd"
    pam.write_text("account include common-account\n")
    it.run(SSSD_OPTIONS="-d 3", SSHD_OPTIONS="-o 'LogLevel DEBUG'")
    assert it.called("ssh-keygen") is None

    (it.root / "etc" / "ssh" / "sshd_config").touch()
    (it.root / "etc" / "sssd" / "sssd.conf").touch()
    it.run("-Z", SSSD_OPTIONS="-d 3", SSHD_OPTIONS="-o 'LogLevel DEBUG'")

    assert ["-D", "-e", "-o", "LogLevel DEBUG"] == it.is_kept("sshd")
    assert ["--interactive", "--logger=stderr", "-d", "3"] == it.is_kept("sssd")
    assert ["-A"] == it.called("ssh-keygen")
    assert ["-D", "-Z"] == it.called("slurmd")
    (added,) = pam.read_text().splitlines()[1:]
    assert added == (
        "account required pam_slurm_adopt.so action_adopt_failure=deny action_generic_failure=deny"
    )
    it.run(PAM_SLURM_ADOPT_OPTIONS="action_unknown=allow")
    assert 2 == len(pam.read_text().splitlines())


def test_a_login_has_sackd_beside_sshd(entrypoint: Make) -> None:
    it = entrypoint("login")

    it.run("-p", "23", SACKD_OPTIONS="--conf-server site:6817", SSHD_OPTIONS="-4")

    assert ["-D", "--conf-server", "site:6817"] == it.is_kept("sackd")
    assert ["-D", "-e", "-4", "-p", "23"] == it.called("sshd")
    assert it.called("sssd") is None


@pytest.mark.parametrize("daemon", ["slurmd", "login"])
def test_without_sssd_its_configuration_is_told_and_not_used(entrypoint: Make, daemon: str) -> None:
    it = entrypoint(daemon)
    (it.root / "etc" / "sssd" / "sssd.conf").touch()
    (it.bin / "sssd").unlink()

    done = it.run()

    assert 0 == done.returncode
    assert "there is a sssd.conf, but no sssd in this image" in done.stderr


def test_what_is_kept_starts_again(entrypoint: Make) -> None:
    it = entrypoint("login")
    it.run()
    it.is_kept("sackd")
    (it.bin / "sackd.called").unlink()

    assert ["-D"] == it.is_kept("sackd")
    assert "sackd ended with exit code 0, and starts again" in (it.root / "errors").read_text()
