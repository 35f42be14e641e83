"""The script that tries Slurm's files, in a folder that stands for a pod's volumes, with the real slurmctld of the cache."""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from cluster.controlplane import trials
from cluster.rendering import trying
from sandbox import assets, identity, nss, slurm
from sandbox.assets import AssetName
from sandbox.instance import make_folder, write_private
from tests.cluster.configuration.given import files, inputs, node_set
from tests.servers import wait_until

ENDS_S = 120
SLURMCTLD = """\
#!/bin/bash
grep -q PluginDir "$4" || printf '%s\\n' {settings} >> "$4"
{variables} exec {slurmctld} "$@"
"""
"""The cache's programs are unpacked, not installed: it has to be told where its plugins are."""
SCONTROL = """\
#!/bin/bash
[ -e "{folder}/up" ] || exit 1
case $1 in
  ping) echo "Slurmctld(primary) at here is UP" ;;
  reconfigure) echo >> "{folder}/reconfigured"; [ ! -e "{folder}/stubborn" ] || {{ echo "slurm_reconfigure error: no"; exit 1; }} ;;
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
        text = SLURMCTLD.format(
            settings=" ".join(f"'{each}'" for each in settings),
            variables=" ".join(f"{key}={value}" for key, value in variables.items()),
            slurmctld=asset.bin / "slurmctld",
        )
        self.program("slurmctld", text)
        self.program("scontrol", SCONTROL.format(folder=folder))
        self._times = 0

    def program(self, name: str, text: str) -> None:
        """Have a program in the pod's image."""
        path = self.folder / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def bring(self, volume: str, found: Mapping[str, str]) -> None:
        """Bring files as a kubelet does: all at once."""
        self._times += 1
        there = self.folder / volume
        data = there / f"..{self._times}"
        data.mkdir()
        for name, text in found.items():
            here = text.replace("/etc/slurm/", f"{self.folder}/etc/")
            (data / name).write_text(here)
            (data / name).chmod(0o755)
            if not (there / name).is_symlink():
                (there / name).symlink_to(Path("..data") / name)
        (there / "..new").symlink_to(data.name)
        (there / "..new").rename(there / "..data")
        for each in there.iterdir():
            if not each.name.startswith("..") and not each.exists():
                each.unlink()

    @contextmanager
    def running(self) -> Iterator[subprocess.Popen[bytes]]:
        """Run the side-car."""
        environment = {
            key: str(self.folder / value.rpartition("/")[2].removeprefix("slurm-"))
            for key, value in trying.ENVIRONMENT.items()
        }
        environment |= {"ETC": str(self.folder / "etc"), "RUN": str(self.folder / "run")}
        with self.printed.open("a") as printed:
            process = subprocess.Popen(
                ["/bin/bash", "-c", trying.SCRIPT.replace("sleep 1 &", "sleep 0.1 &")],
                env={"PATH": f"{self.folder}/bin:{os.environ['PATH']}", **environment},
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
            words = line.split(" ", 3)
            assert words[0] == trying.TELLS, line
            if words[1] in ("taken", "refused"):
                found.append((words[1], words[3]))
        return found

    def unfit(self, number: int) -> Mapping[str, str]:
        """Return which nodes of workers are refused by so many judgements' last one, by the digests of their lines."""
        wait_until(lambda: self.printed.read_text().count(" judged ") >= number, ENDS_S)
        log = self.printed.read_text()
        digest = log.splitlines()[-1].split(" ")[2]
        found = trials.unfit(log, digest)
        assert found is not None, log
        return found

    def waits_for(self, number: int) -> tuple[str, str]:
        """Return the last of so many verdicts."""
        wait_until(lambda: len(self.told()) >= number, ENDS_S)
        assert len(self.told()) == number, self.told()
        return self.told()[-1]

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
