"""Slurm's accounting: mariadb and slurmdbd as parts."""

import subprocess
from functools import partial
from pathlib import Path

from sandbox import identity, launch, probes, slurm, slurm_conf
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.instance import Instance, make_folder, write_private
from sandbox.part import Part

_DATABASE = "slurm_acct"


def prepare(instance: Instance, asset: Asset) -> None:
    """Write slurmdbd's configuration and create the database's folder."""
    user = identity.servers()
    make_folder(instance.slurm / "mariadb", user)
    conf = slurm_conf.slurmdbd_conf(instance, user=user, unpacked=slurm.unpacked(asset))
    write_private(instance.slurm / "slurmdbd.conf", conf, user)


def parts(instance: Instance, asset: Asset) -> tuple[Part, ...]:
    """Return the database and the daemon in front of it."""
    return (_mariadb(instance, asset), _slurmdbd(instance, asset))


def _mariadb(instance: Instance, asset: Asset) -> Part:
    folder = instance.slurm / "mariadb"
    return Part(
        name="mariadb",
        argv=(
            str(asset.bin / "mariadbd"),
            *_options(asset, folder),
            "--socket=socket",  # relative to its data folder: a longer path would not fit
            "--bind-address=127.0.0.1",
            f"--port={instance.ports['mariadb']}",
            "--skip-grant-tables",
        ),
        identity=identity.servers(),
        folder=folder,
        port=instance.ports["mariadb"],
        answers=partial(probes.listens, instance.ports["mariadb"]),
        prepare=partial(_bootstrap, instance, asset, folder),
        data=(folder,),
    )


def _slurmdbd(instance: Instance, asset: Asset) -> Part:
    return Part(
        name="slurmdbd",
        argv=(str(asset.bin / "slurmdbd"), "-D"),
        env=slurm.daemon_environment(instance, asset),
        identity=identity.servers(),
        folder=instance.slurm / "run",
        port=instance.ports["slurmdbd"],
        answers=partial(probes.listens, instance.ports["slurmdbd"]),
        needs=("mariadb",),
    )


def _bootstrap(instance: Instance, asset: Asset, folder: Path) -> None:
    """Create the system tables and slurmdbd's database, if the folder is empty.

    slurmdbd could create the database itself, but it crashes on that first start (libmariadb 3.4.10: "5027 Number of columns
    in result").
    """
    if (folder / "mysql").exists():
        return
    scripts = (
        _share(asset) / "mariadb_system_tables.sql",
        _share(asset) / "mariadb_system_tables_data.sql",
    )
    sql = "\n".join(("create database mysql;", "use mysql;", *(s.read_text() for s in scripts)))
    who = identity.servers()
    program = (str(asset.bin / "mariadbd"), *_options(asset, folder), "--bootstrap")
    done = subprocess.run(
        launch.command(program, uid=who.uid, gid=who.gid, env={"HOME": str(folder)}),
        input=f"{sql}\ncreate database {_DATABASE};\n".encode(),
        cwd=folder,
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        instance.log("mariadb").write_bytes(done.stdout)
        raise SandboxError(
            f"mariadb could not create its system tables (exit code {done.returncode}): {instance.log('mariadb')}"
        )


def _options(asset: Asset, folder: Path) -> tuple[str, ...]:
    base = () if asset.root is None else (f"--basedir={asset.root / 'usr'}",)
    return (
        "--no-defaults",
        *base,
        f"--lc-messages-dir={_share(asset)}",
        f"--character-sets-dir={_share(asset) / 'charsets'}",
        f"--datadir={folder}",
        f"--tmpdir={folder}",  # in /tmp, the temporary tables of two servers with the same process id would clash
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
        "--innodb-doublewrite=0",
        "--innodb-lock-wait-timeout=900",
        "--innodb-snapshot-isolation=OFF",  # slurmdbd updates rows it has read earlier in the transaction
        "--performance-schema=OFF",
    )


def _share(asset: Asset) -> Path:
    return (asset.root or Path("/")) / "usr" / "share" / "mariadb"
