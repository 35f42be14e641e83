"""What the entry points make of arguments and environment: run with bash, their programs replaced by ones that note how they were called."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.containers.entrypoint import CONF, ENDS_S, MACHINE, NOTES, Entrypoint
from tests.servers import wait_until

pytestmark = pytest.mark.slow


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

    it.run("-Z", ASK_EVERY_S="0")
    assert it.called("sleep") is None
    done = it.run("-Z", ASK_EVERY_S="0")
    assert ["21"] == it.called("sleep")
    assert "slurmd starts in 21 s" in done.stderr
    assert ["-D", "-Z"] == it.called("slurmd")
    # What a restart of the machine leaves is the volume for this mark, not that in memory.
    assert (it.root / "var/lib/slurm/.slurmd-was-here").exists()
    it.run("-Z", RESTART_PAUSE_S="40", ASK_EVERY_S="0")
    assert ["40"] == it.called("sleep")


def test_a_first_container_waits_if_slurm_had_jobs_there(entrypoint: Make) -> None:
    it = entrypoint("slurmd")
    it.write("sleep", NOTES)

    done = it.run("-Z", ASK_EVERY_S="0", MAY_HAVE_LOST_JOBS="Slurm has jobs on gpu-0")

    assert ["21"] == it.called("sleep")
    assert "Slurm had jobs here before this pod: slurmd starts in 21 s" in done.stderr


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
    assert "sackd ended with exit code 0, and starts again" in it.errors


SACKD = """\
#!/bin/bash
echo started >> "$0.starts"
while sleep 0.1; do :; done
"""


def test_sackd_fetches_a_configuration_that_is_not_its_own(entrypoint: Make) -> None:
    it = entrypoint("login")
    it.write("sackd", SACKD)
    it.write("sshd", "#!/bin/sh\nexec sleep 60\n")
    hash_val, starts = it.bin / "hash_val", it.bin / "sackd.starts"
    it.write("scontrol", f'#!/bin/sh\necho asked >> "$0.called"\ncat {hash_val}\n')
    hash_val.write_text("HASH_VAL                = Match\n")
    it.start(ASK_EVERY_S="1")
    wait_until(lambda: len(it.called("scontrol") or ()) > 1, ENDS_S)
    assert len(starts.read_text().split()) == 1

    hash_val.write_text("HASH_VAL                = Different Ours=0xb0be477e Slurmctld=0x1\n")
    wait_until(lambda: len(starts.read_text().split()) == 3, ENDS_S)
    assert "sackd fetches it" in it.errors
    hash_val.write_text("HASH_VAL                = Match\n")
    asked = len(it.called("scontrol") or ())
    wait_until(lambda: len(it.called("scontrol") or ()) > asked + 1, ENDS_S)
    assert len(starts.read_text().split()) == 3


HANGS_UP = f"""\
#!{sys.executable}
import signal, sys, time
from pathlib import Path

signals, called, asked = (
    Path(sys.argv[0] + ".signals"), Path(sys.argv[0] + ".called"), Path(sys.argv[0]).with_name("sinfo.called")
)
signal.signal(signal.SIGHUP, lambda number, frame: signals.write_text("HUP"))
called.write_text(" ".join(sys.argv[1:]))

def times_asked():
    return asked.read_text().count("\\n") if asked.exists() else 0

enough, ends_at = times_asked() + 4, time.monotonic() + 30
while times_asked() < enough and time.monotonic() < ends_at:
    time.sleep(0.1)
signal.signal(signal.SIGHUP, signal.SIG_IGN)
"""
"""A slurmd that takes SIGHUP, and ends when it has been asked for four times since it does.

Python, because bash 5.2 may lose a signal: a trap that runs while bash reads `$(…)` misses the end of it.
"""


@pytest.mark.parametrize(
    ("sinfo", "scontrol", "registers"),
    [
        pytest.param(":", "echo Node $3 not found; exit 1", True, id="missing"),
        pytest.param("echo gpu-7", "echo Node $3 not found; exit 1", False, id="known"),
        pytest.param(":", "echo NodeName=$3", False, id="without-a-partition"),
        pytest.param("exit 1", "echo Node $3 not found; exit 1", False, id="no-answer"),
        pytest.param(
            ":", "echo slurm_load_node: Unable to contact; exit 1", False, id="answers-no-more"
        ),
    ],
)
def test_slurmd_registers_again_if_slurmctld_surely_lacks_its_node(
    entrypoint: Make, sinfo: str, scontrol: str, *, registers: bool
) -> None:
    it = entrypoint("slurmd")
    it.write("slurmd", HANGS_UP)
    it.write("sinfo", f'#!/bin/sh\necho "$@" >> "$0.called"\n{sinfo}\n')
    it.write("scontrol", f"#!/bin/sh\n{scontrol}\n")

    done = it.run("-N", "gpu-7", ASK_EVERY_S="1")

    asked = it.called("sinfo") or []
    assert 3 <= len(asked)
    assert all("--nodes=gpu-7" in each.split() for each in asked)
    assert ((it.bin / "slurmd.signals").exists(), done.returncode) == (registers, 0)
    assert ("slurmctld does not have node gpu-7" in done.stderr) is registers


def test_a_slurmd_that_a_hangup_would_end_is_let_be(entrypoint: Make) -> None:
    it = entrypoint("slurmd")
    it.write("slurmd", "#!/bin/sh\nsleep 4\n")
    it.write("sinfo", "#!/bin/sh\n")
    it.write("scontrol", "#!/bin/sh\necho Node $3 not found; exit 1\n")

    assert it.run("-Ngpu-7", ASK_EVERY_S="1").returncode == 0
