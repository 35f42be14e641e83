"""The collector copies what a job left, follows no link, and is honest about what it could not copy."""

import contextlib
import os
import socket
import stat
from pathlib import Path

import pytest

from slurmjobs.companions import collector
from slurmjobs.companions.collector import TRY_AGAIN, Copier

ALICE = 64101
PART = ".slurm-bridge-5b1c"


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "scratch"
    folder.mkdir()
    return folder


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "claim"
    folder.mkdir()
    return folder


def collected(*order: tuple[Path, Path], at_sleep: object = None) -> tuple[int, str]:
    def sleep(_s: float) -> None:
        if callable(at_sleep):
            at_sleep()

    return collector.run([[str(source), str(to)] for source, to in order], Copier(PART, sleep))


def test_a_file_and_a_folder_arrive_with_their_content_mode_and_time(
    scratch: Path, claim: Path
) -> None:
    (scratch / "model.bin").write_bytes(b"\0" * 3_000_000 + b"end")
    (scratch / "out" / "deep").mkdir(parents=True)
    (scratch / "out" / "deep" / "a").write_text("a")
    (scratch / "out" / "deep" / "a").chmod(0o4750)
    os.utime(scratch / "out" / "deep" / "a", (1, 2))
    (scratch / "out" / "latest").symlink_to("deep/a")

    code, said = collected((scratch / "model.bin", claim / "x/y"), (scratch / "out", claim))

    assert (0, "3 files, 3000004 bytes") == (code, said)
    assert (scratch / "model.bin").read_bytes() == (claim / "x/y/model.bin").read_bytes()
    copied = (claim / "out/deep/a").stat()
    assert (0o750, 2) == (stat.S_IMODE(copied.st_mode), copied.st_mtime)
    assert Path("deep/a") == (claim / "out/latest").readlink()
    assert not list(claim.rglob(".*"))


def test_a_second_try_overwrites_what_the_first_one_left(scratch: Path, claim: Path) -> None:
    (scratch / "out").mkdir()
    (scratch / "out" / "a").write_text("new")
    (scratch / "out" / "link").symlink_to("a")
    (claim / "out").mkdir()
    (claim / "out" / "a").write_text("old, and longer")
    (claim / "out" / PART).write_text("half of")
    (claim / "out" / "link").symlink_to("elsewhere")

    assert 0 == collected((scratch / "out", claim))[0]
    assert 0 == collected((scratch / "out", claim))[0]

    assert {"a": "new", "link": "new"} == {
        each.name: each.read_text() for each in (claim / "out").iterdir()
    }


def test_a_file_that_is_called_like_a_part_of_another_is_kept(scratch: Path, claim: Path) -> None:
    (scratch / "out").mkdir()
    for name in ("x", ".x.part", ".slurm-bridge-other"):
        (scratch / "out" / name).write_text(name)
    (claim / "out").mkdir()
    (claim / "out" / ".y.part").write_text("somebody's")

    assert 0 == collected((scratch / "out", claim))[0]

    arrived = {each.name: each.read_text() for each in (claim / "out").iterdir()}
    mine = {name: name for name in ("x", ".x.part", ".slurm-bridge-other")}
    assert {**mine, ".y.part": "somebody's"} == arrived
    (scratch / "out" / PART).touch()
    code, said = collected((scratch / "out", claim))
    assert (1, True) == (code, "this name is reserved for files being copied" in said)


def test_the_target_leads_nowhere_else(scratch: Path, claim: Path) -> None:
    (scratch / "a").touch()

    code, said = collected((scratch / "a", claim / ".." / "scratch"))

    assert (1, True) == (code, "a path may not contain `..`" in said)


def test_names_that_are_no_text_and_very_long_ones_arrive(scratch: Path, claim: Path) -> None:
    names = [b"\xff\xfe", "ä".encode() * 127, b"x" * 255, b"new\nline", b"$(id)"]
    for name in names:
        Path(os.fsdecode(os.fsencode(scratch) + b"/" + name)).write_bytes(name)

    assert 0 == collected((scratch, claim))[0]

    arrived = {os.fsencode(each.name): each.read_bytes() for each in (claim / "scratch").iterdir()}
    assert dict(zip(names, names, strict=True)) == arrived


@pytest.mark.attack(
    "have the pod that copies results read what is not the job's, by a link in the place of a result",
    "no part of the path and no file is followed if it is a link; links inside a folder stay links",
)
def test_no_link_is_followed_to_what_is_read(scratch: Path, claim: Path, tmp_path: Path) -> None:
    secret = tmp_path.resolve() / "secret"
    secret.mkdir()
    (secret / "key").write_text("secret")
    (scratch / "folder").symlink_to(secret)
    (scratch / "file").symlink_to(secret / "key")
    (scratch / "tree").mkdir()
    (scratch / "tree" / "inside").symlink_to(secret)

    assert 1 == collected((scratch / "folder" / "key", claim))[0]
    assert 1 == collected((scratch / "file", claim))[0]
    assert 0 == collected((scratch / "tree", claim))[0]

    assert (claim / "tree/inside").is_symlink()
    assert "secret" not in {each.read_text() for each in claim.rglob("*") if each.is_file()}


@pytest.mark.attack(
    "have the pod that copies results write elsewhere, by a link on the claim",
    "no part of the target is followed if it is a link, and a file replaces a link of its name",
)
def test_no_link_is_followed_to_what_is_written(scratch: Path, claim: Path, tmp_path: Path) -> None:
    other = tmp_path.resolve() / "other"
    other.mkdir()
    (other / "a").write_text("theirs")
    (scratch / "a").write_text("mine")
    (scratch / "out").mkdir()
    (scratch / "out" / "a").write_text("mine")
    (claim / "link").symlink_to(other)
    (claim / "out").symlink_to(other)
    (claim / "a").symlink_to(other / "a")
    (claim / PART).symlink_to(other / "a")

    assert 1 == collected((scratch / "a", claim / "link"))[0]
    assert 1 == collected((scratch / "out", claim))[0]
    assert 0 == collected((scratch / "a", claim))[0]

    assert "theirs" == (other / "a").read_text()
    assert ["a"] == [each.name for each in other.iterdir()]
    assert "mine" == (claim / "a").read_text()
    assert not (claim / "a").is_symlink()


def test_what_is_no_file_is_left_out_and_told(scratch: Path, claim: Path) -> None:
    out = scratch / "out"
    out.mkdir()
    (out / "a").write_text("a")
    os.mkfifo(out / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        with contextlib.chdir(out):  # an address has room for 107 bytes
            listening.bind("socket")
        code, said = collected((out, claim))

    assert 0 == code
    assert "1 files, 1 bytes; skipped, as not regular files" in said
    assert f"{out}/pipe" in said
    assert f"{out}/socket" in said
    assert (1, f"{out}/pipe: expected a file or a folder") == collected((out / "pipe", claim))


def test_what_is_missing_is_waited_for(scratch: Path, claim: Path) -> None:
    late = scratch / "late"

    assert 0 == collected((late, claim), at_sleep=lambda: late.write_text("at last"))[0]
    assert "at last" == (claim / "late").read_text()


def test_what_stays_missing_is_told_and_the_rest_is_copied(scratch: Path, claim: Path) -> None:
    (scratch / "b").write_text("b")

    code, said = collected((scratch / "a", claim), (scratch / "b", claim))

    assert (1, f"{scratch}/a: no such file or folder") == (code, said)
    assert "b" == (claim / "b").read_text()


def test_it_is_bounded(scratch: Path, claim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = scratch / "deep"
    (deep / "/".join("d" * collector.DEEPEST)).mkdir(parents=True)
    (scratch / "many").mkdir()
    for number in range(20):
        (scratch / "many" / str(number)).touch()

    code, said = collected((deep, claim))
    assert (1, True) == (code, "nested more than 64 deep" in said)
    monkeypatch.setattr(collector, "MOST_ENTRIES", 20)
    code, said = collected((scratch / "many", claim))
    assert (1, True) == (code, "more than 20 files" in said)


def test_a_full_volume_is_worth_another_try(scratch: Path, claim: Path) -> None:
    (scratch / "a").write_text("a" * 100)

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "write", full)
        code, said = collected((scratch / "a", claim))

    assert (TRY_AGAIN, True) == (code, "No space left on device" in said)
    assert 0 == collected((scratch / "a", claim))[0]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_as_the_jobs_user_it_reads_and_writes_what_that_user_may(
    scratch: Path, claim: Path
) -> None:
    """A folder on the way has to be searchable, not readable."""
    home = scratch / "home"
    (home / "alice").mkdir(parents=True)
    (home / "alice" / "out").write_text("mine")
    (home / "key").write_text("root's")
    (home / "key").chmod(0o600)
    home.chmod(0o711)
    for each in (home / "alice", home / "alice" / "out", claim):
        os.chown(each, ALICE, ALICE)
    for parent in scratch.parents:
        if parent.stat().st_uid == 0 and "pytest" in str(parent):
            parent.chmod(0o711)
    # Not another program: this one's interpreter may lie where that user may not go.
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.setgroups([])
            os.setgid(ALICE)
            os.setuid(ALICE)
            code, said = collected((home / "alice" / "out", claim), (home / "key", claim))
            (claim / "said").write_text(said)
        finally:
            os._exit(code)

    assert 1 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert ("mine", ALICE) == ((claim / "out").read_text(), (claim / "out").stat().st_uid)
    assert "key: Permission denied" in (claim / "said").read_text()
    assert not (claim / "key").exists()
