"""The scripts that try Slurm's files, in a folder that stands for a pod's volumes, with the real daemons of the cache."""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sandbox import assets, identity, nss, slurm
from sandbox.assets import AssetName
from sandbox.instance import make_folder, write_private
from slurmoperator.configuration.rendering import ConfigurationSet
from slurmoperator.daemons import trials
from slurmoperator.rendering import trying
from tests.servers import wait_until
from tests.slurmoperator.configuration.given import files, inputs, node_set

ENDS_S = 120
DAEMON = """\
#!/bin/bash
conf=${{SLURM_CONF%/*}}/{file}
grep -q PluginDir "$conf" || printf '%s\\n' {settings} >> "$conf"
{variables} exec {program} "$@"
"""
"""The cache's programs are unpacked, not installed: they have to be told where their plugins are."""
MV = """\
#!/bin/sh
{mv} "$@" || exit
[ ! -e {folder}/hold ] || : > {folder}/held
while [ -e {folder}/hold ]; do sleep 0.05; done
"""
"""Called for a file that is put: waits afterwards while a file `hold` exists."""
SCONTROL = """\
#!/bin/bash
[ -e "{folder}/up" ] || exit 1
case $1 in
  show) echo "HASH_VAL = $([ -e "{folder}/differs" ] && echo 'Different Ours=0x1 Slurmctld=0x2' || echo Match)" ;;
  reconfigure) echo >> "{folder}/reconfigured"; [ ! -e "{folder}/refusal" ] || {{ cat "{folder}/refusal"; exit 1; }} ;;
esac
"""


def made(extra: str = "", **fields: object) -> dict[str, str]:
    """Return the files of a cluster with lines of its own."""
    return dict(files(inputs(node_set(), extraConf=extra, **fields)))  # type: ignore[arg-type]


class Pod:
    """The volumes, and the side-car."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.user = identity.servers()
        self.printed = folder / "printed"
        asset = assets.resolve(AssetName.SLURM, report=lambda _: None)
        os.chown(folder, self.user.uid, self.user.gid)
        for each in ("etc", "wanted", "proven", "keys", "run", "bin"):
            make_folder(folder / each, self.user)
        for name in ("slurm.key", "jwt.key"):
            write_private(folder / "keys" / name, os.urandom(1024), self.user)
        nss.prepare(folder)
        with (folder / "passwd").open("a") as accounts:
            accounts.write(f"slurm:x:{self.user.uid}:{self.user.gid}::/:/bin/sh\n")
        variables = nss.environment(folder, slurm.libraries(asset))
        settings = slurm.unpacked(asset).splitlines()[:1]
        for name, file in (("slurmctld", "slurm.conf"), ("slurmdbd", "slurmdbd.conf")):
            text = DAEMON.format(
                file=file,
                settings=" ".join(f"'{setting}'" for setting in settings),
                variables=" ".join(f"{key}={value}" for key, value in variables.items()),
                program=asset.bin / name,
            )
            self.program(name, text)
        self.program("scontrol", SCONTROL.format(folder=folder))
        self.program("mv", MV.format(folder=folder, mv=shutil.which("mv")))
        self._times = 0

    def program(self, name: str, text: str) -> None:
        """Have a program in the pod's image."""
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def bring(self, volume: str, files_of: Mapping[str, str]) -> None:
        """Bring files as a kubelet does: all at once; those that are wanted say which write of them they are."""
        self._times += 1
        found = dict(files_of)
        if volume == "wanted":
            found[trying.WRITE_FILE] = str(self._times)
        there = self.folder / volume
        data = there / f"..{self._times}"
        data.mkdir()
        for name, text in found.items():
            here = text.replace("/etc/slurm/", f"{self.folder}/etc/")
            (data / name).write_text(here)
            (data / name).chmod(0o755)
        (there / "..new").symlink_to(data.name)
        (there / "..new").rename(there / "..data")
        for name in found:  # only now, or the first ones would lead nowhere for a moment
            if not (there / name).is_symlink():
                (there / name).symlink_to(Path("..data") / name)
        for each in there.iterdir():
            if not each.name.startswith("..") and not each.exists():
                each.unlink()

    @property
    def environment(self) -> dict[str, str]:
        """Where the scripts find all."""
        found = {
            key: str(self.folder / value.rpartition("/")[2].removeprefix("slurm-"))
            for key, value in {**trying.ENVIRONMENT, **trying.LAST_WORDS}.items()
        }
        found |= {"ETC": str(self.folder / "etc"), "RUN": str(self.folder / "run")}
        return {"PATH": f"{self.folder}/bin:{os.environ['PATH']}", **found}

    def starts_slurmdbd(self, digest: str = "") -> tuple[str, str, bool]:
        """Run what comes before slurmdbd; return what it said of the file, Slurm's words, and whether slurmdbd starts."""
        done = subprocess.run(
            ["/bin/bash", "-c", trying.SLURMDBD_SCRIPT],
            env={**self.environment, "DIGEST": digest or self.digest("wanted")},
            capture_output=True,
            check=False,
            text=True,
            timeout=ENDS_S,
            cwd=self.folder,
            user=self.user.uid,
            group=self.user.gid,
            extra_groups=(),
        )
        last_words = (self.folder / "termination-log").read_text()
        assert (last_words, "") == (done.stdout, done.stderr)
        tells, verdict, told_of, write, words = last_words.rstrip("\n").split(" ", 4)
        assert (tells, told_of, write) == (trying.LOG_PREFIX, self.digest("wanted"), "-")
        return verdict, words, done.returncode == 0

    def told_anywhere(self) -> str:
        """All that was said, or lies about after a trial."""
        found = [self.folder / "termination-log", *(self.folder / "run").rglob("*")]
        return "".join(each.read_text() for each in found if each.is_file())

    @contextmanager
    def later(self, after_s: float, do: Callable[[], None]) -> Iterator[None]:
        """Have something happen meanwhile."""
        timer = threading.Timer(after_s, do)
        timer.start()
        try:
            yield
        finally:
            timer.join()

    def digest(self, volume: str) -> str:
        """The digest of what was brought last."""
        files = {
            each.name: each.read_text()
            for each in (self.folder / volume).iterdir()
            if not each.name.startswith("..") and each.name != trying.WRITE_FILE
        }
        return ConfigurationSet(files=files).digest

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the side-car."""
        with self.printed.open("a") as printed:
            process = subprocess.Popen(
                ["/bin/bash", "-c", trying.SCRIPT.replace("sleep 1 &", "sleep 0.1 &")],
                env=self.environment,
                stdout=printed,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                user=self.user.uid,
                group=self.user.gid,
                extra_groups=(),
                start_new_session=True,
            )
            try:
                yield process
            finally:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def told(self) -> list[tuple[str, str]]:
        """Return what it said became of the files, and Slurm's words."""
        found = []
        for line in self.printed.read_text().splitlines():
            words = line.split(" ", 4)
            assert words[0] == trying.LOG_PREFIX, line
            if words[1] in ("taken", "refused"):
                found.append((words[1], words[4]))
        return found

    def takes_the_last_write(self) -> bool:
        """Check whether its last words are that slurmctld has what was brought last."""
        written = (self.folder / "wanted" / trying.WRITE_FILE).read_text()
        tag = f"{self.digest('wanted')} {written}"
        outcome = trials.verdict(self.printed.read_text(), tag).outcome
        return outcome is trials.TrialOutcome.TAKEN

    def unfit(self, number: int) -> Mapping[str, str]:
        """Return which nodes of workers are refused by so many judgements' last one, by the digests of their lines."""
        wait_until(lambda: self.printed.read_text().count(" judged ") >= number, ENDS_S)
        log = self.printed.read_text()
        tag = " ".join(log.splitlines()[-1].split(" ")[2:4])
        found = trials.unfit_nodes(log, tag)
        assert found is not None, log
        return found

    def waits_for(self, number: int) -> tuple[str, str]:
        """Return the last of so many verdicts."""
        wait_until(lambda: len(self.told()) >= number, ENDS_S)
        assert len(self.told()) == number, self.told()
        return self.told()[-1]

    @contextmanager
    def holding(self, files_of: Mapping[str, str]) -> Iterator[None]:
        """Bring files, and have the side-car wait once it has put the first one of them."""
        (self.folder / "hold").touch()
        try:
            self.bring("wanted", files_of)
            wait_until((self.folder / "held").exists, ENDS_S)
            yield
        finally:
            (self.folder / "hold").unlink()

    def serves_with(self, files_of: Mapping[str, str]) -> bool:
        """Check whether slurmctld reads just these of the files."""
        return all(
            text.replace("/etc/slurm/", f"{self.folder}/etc/")
            == (self.folder / "etc" / name).read_text()
            for name, text in files_of.items()
        )

    def has(self, text: str) -> bool:
        """Check whether it stands in the slurm.conf that slurmctld reads."""
        conf = self.folder / "etc" / "slurm.conf"
        return conf.exists() and text in conf.read_text()


@contextmanager
def pod() -> Iterator[Pod]:
    """A pod of which nothing has run yet."""
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    try:
        yield Pod(folder)
    finally:
        shutil.rmtree(folder)
