"""slurmdbd starts with a file that the image's own slurmdbd has taken; one that it refuses is told and never put in force."""

import socket
from collections.abc import Iterator

import pytest

from slurmoperator.configuration import slurmdbd_conf
from tests.slurmoperator.rendering import trying
from tests.slurmoperator.rendering.given import given
from tests.slurmoperator.rendering.trying import Pod

pytestmark = pytest.mark.slow

PASSWORD = "hunter2 for#eyes"  # noqa: S105  # of no database
REFUSED = {
    "DebugLevel=chatty": "fatal: Invalid DebugLevel chatty",
    "DebugLevelSyslog=loud": "fatal: Invalid DebugLevelSyslog loud",
    "DebugFlags=foo": "error: Invalid DebugFlag: foo; fatal: DebugFlags invalid: foo",
    "PurgeJobAfter=2fortnights": 'Bad value "2fortnights" for PurgeJobAfter',
    "PurgeUsageAfter=ever": 'Bad value "ever" for PurgeUsageAfter',
    "TrackWCKey=maybe": 'error: "maybe" is not a valid option for "TrackWCKey"',
    "ArchiveJobs=ja": 'error: "ja" is not a valid option for "ArchiveJobs"',
    "MessageTimeout=ten": 'error: MessageTimeout value "ten" is not a valid number',
    "MaxPurgeLimit=1e6": "error: MaxPurgeLimit value (1e6) is not a valid number",
    "CommitDelay=-1": "error: CommitDelay value (-1) is less than zero",
    "TCPTimeout=70000": "error: TCPTimeout value (70000) is greater than 65535",
    "ArchiveDir=/nosuch": "fatal: Failed to stat the archive directory /nosuch",
    "HashPlugin=hash/nosuch": "error: cannot create hash context for hash/nosuch",
    "TLSType=tls/nosuch": "error: cannot create tls context for tls/nosuch",
    "CommunicationParameters=DisableIPv4": "fatal: Both IPv4 and IPv6 support disabled",
    "StorageType=accounting_storage/nosuch": "context for accounting_storage/nosuch",
    "NoSuchKey=1": "error: _parse_next_key: Parsing error at unrecognized key: NoSuchKey",
    "no value": 'error: Parse error in file /etc/slurm/slurmdbd.conf line 15: "no value"',
}
"""Lines that end a slurmdbd at its start, and its words."""


@pytest.fixture
def pod() -> Iterator[Pod]:
    with trying.pod() as found:
        yield found


def with_lines(lines: str = "") -> dict[str, str]:
    """The file with lines that our own check may refuse: here slurmdbd is to."""
    text = slurmdbd_conf.text(given("Accounting", extraConf=""), PASSWORD)
    return {slurmdbd_conf.FILE: f"{text}{lines}\n"}


def in_force(pod: Pod) -> str:
    return (pod.folder / "etc" / slurmdbd_conf.FILE).read_text()


def test_what_slurmdbd_refuses_is_told_in_its_words_and_the_last_file_stays(pod: Pod) -> None:
    pod.bring("proven", with_lines("CommitDelay=3"))
    for lines, words in REFUSED.items():
        pod.bring("wanted", with_lines(lines))
        verdict, said, starts = pod.starts_slurmdbd()
        assert ("refused", True) == (verdict, starts), (lines, said)
        assert words in said.replace(f"{pod.folder}/etc/", "/etc/slurm/"), (lines, said)
        assert "Could not open/read/parse" not in said
        assert str(pod.folder / "run") not in said
        assert "CommitDelay=3\n" in in_force(pod)
    assert "hunter2" not in pod.told_anywhere()

    pod.bring("wanted", with_lines("CommitDelay=4"))
    assert ("taken", "", True) == pod.starts_slurmdbd()
    assert "CommitDelay=4\n" in in_force(pod)
    assert f'StoragePass="{PASSWORD.replace("#", chr(92) + "#")}"\n' in in_force(pod)
    assert 0o600 == (pod.folder / "etc" / slurmdbd_conf.FILE).stat().st_mode & 0o777


def test_without_such_a_file_slurmdbd_does_not_start(pod: Pod) -> None:
    pod.bring("wanted", with_lines("CommitDelay=-1"))
    pod.bring("proven", with_lines("CommitDelay=-1"))  # the first one stands in both
    assert ("refused", False) == pod.starts_slurmdbd()[::2]
    assert not (pod.folder / "etc" / slurmdbd_conf.FILE).exists()


def test_a_trial_that_cannot_be_run_is_no_refusal(pod: Pod) -> None:
    pod.program("slurmdbd", "#!/bin/sh\necho 'fatal: no such machine' >&2\nexit 1\n")
    pod.bring("proven", with_lines("CommitDelay=3"))
    pod.bring("wanted", with_lines("CommitDelay=4"))
    assert ("taken", True) == pod.starts_slurmdbd()[::2]
    assert "CommitDelay=4\n" in in_force(pod)


def test_a_trial_reaches_no_database_runs_nobodys_program_and_leaves_nothing(pod: Pod) -> None:
    pod.program("touched", f"#!/bin/sh\ntouch {pod.folder}/touched\n")
    with socket.create_server(("127.0.0.1", 0)) as database:
        port = database.getsockname()[1]
        lines = (
            f"StorageHost=127.0.0.1\nStorageBackupHost=localhost\nStoragePort={port}\n"
            f"StoragePassScript={pod.folder}/bin/touched\nPidFile={pod.folder}/pid\n"
            f"LogFile={pod.folder}/log\nAuthInfo=cred_expire=100\n"
        )
        pod.bring("wanted", with_lines(lines))
        assert ("taken", "", True) == pod.starts_slurmdbd()
        database.settimeout(0)
        with pytest.raises(BlockingIOError):
            database.accept()
    for name in ("touched", "pid", "log", "run/trial"):
        assert not (pod.folder / name).exists(), name


def test_a_file_that_comes_late_is_waited_for(pod: Pod) -> None:
    """A kubelet may still have what the pod before had."""
    pod.bring("wanted", with_lines("CommitDelay=4"))
    late = pod.digest("wanted")
    pod.bring("wanted", with_lines("CommitDelay=-1"))
    with pod.later(1.0, lambda: pod.bring("wanted", with_lines("CommitDelay=4"))):
        assert ("taken", "", True) == pod.starts_slurmdbd(late)
