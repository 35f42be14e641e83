"""Slurm: keys and configuration, slurmctld and slurmrestd as parts, and its commands for PATH."""

import secrets
import shlex
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from sandbox import identity, nss, probes, slurm_conf, slurm_rest
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.identity import Identity
from sandbox.instance import Instance, make_folder, write_private
from sandbox.part import Part
from sandbox.realnodes import slurmd as real_slurmd
from sandbox.realnodes.network import Network

COMMANDS = (
    "sacct",
    "sacctmgr",
    "sbatch",
    "scancel",
    "scontrol",
    "sdiag",
    "sinfo",
    "squeue",
    "sshare",
)


def prepare(
    instance: Instance, asset: Asset, now: datetime, network: Network | None = None
) -> None:
    """Create keys, configuration files, folders and the commands in `bin`."""
    user = identity.servers()
    folder = make_folder(instance.slurm, user)
    for name in ("state", "run"):
        make_folder(folder / name, user)
    write_private(folder / "slurm.key", secrets.token_bytes(1024), user)
    write_private(folder / "jwt.key", secrets.token_bytes(32), user)
    text = slurm_conf.slurm_conf(instance, user=user, unpacked=unpacked(asset), network=network)
    instance.slurm_conf.write_text(text)
    # slurmrestd refuses to be SlurmUser; if everything has one uid, its file names another SlurmUser.
    _rest_conf(instance).write_text(
        text.replace(f"\nSlurmUser={user.name}\n", "\nSlurmUser=root\n")
    )
    token = slurm_rest.token(instance, identity.ROOT.name, now)
    write_private(slurm_rest.token_file(instance), token)
    nss.prepare(folder, real_slurmd.hosts(instance, network))
    for name in COMMANDS:
        write_command(instance.bin / name, asset, folder)


def parts(instance: Instance, asset: Asset) -> tuple[Part, ...]:
    """Return the controller and the REST daemon."""
    return (_slurmctld(instance, asset), _slurmrestd(instance, asset))


def _slurmctld(instance: Instance, asset: Asset) -> Part:
    return Part(
        name="slurmctld",
        # -i: a slurmctld killed before its first periodic save leaves incomplete state files,
        # otherwise fatal.
        argv=(str(asset.bin / "slurmctld"), "-D", "-i", "-f", str(instance.slurm_conf)),
        env=daemon_environment(instance, asset),
        identity=identity.servers(),
        folder=instance.slurm / "run",
        port=instance.ports["slurmctld"],
        answers=partial(probes.says_yes, f"{instance.url('slurmctld')}/readyz"),
        needs=("slurmdbd",) if instance.options.accounting else (),
        data=(instance.slurm / "state",),
    )


def _slurmrestd(instance: Instance, asset: Asset) -> Part:
    single_uid = identity.servers() == identity.slurmrestd()
    conf = _rest_conf(instance) if single_uid else instance.slurm_conf
    return Part(
        name="slurmrestd",
        argv=(
            str(asset.bin / "slurmrestd"),
            *("-f", str(conf)),
            *("-a", "rest_auth/jwt"),
            *("-t", "8"),
            *(("-d", parser) if (parser := instance.options.data_parser) else ()),
            f"127.0.0.1:{instance.ports['slurmrestd']}",
        ),
        env={
            **nss.environment(instance.slurm, libraries(asset)),
            "SLURM_CONF": str(conf),
            "SLURM_JWT": "daemon",  # load only auth/jwt: neither munge nor slurm.key is needed
            "SLURMRESTD_JSON": "compact",
            "SLURMRESTD_DEBUG_STDERR": "error",
            "MALLOC_ARENA_MAX": "1",  # a list of jobs costs memory per arena that is never returned
        },
        identity=identity.slurmrestd(),
        folder=Path("/"),
        port=instance.ports["slurmrestd"],
        answers=partial(
            probes.says_yes,
            slurm_rest.diagnostics_url(instance),
            headers=slurm_rest.credentials(instance),
        ),
        needs=("slurmctld",),
        once_up=partial(_populate, instance),
    )


def _populate(instance: Instance) -> None:
    if instance.options.accounting:
        slurm_rest.create_associations(instance)
    if not instance.options.bridge:  # otherwise the node controller registers them
        slurm_rest.create_nodes(instance)


def daemon_environment(instance: Instance, asset: Asset) -> dict[str, str]:
    """Return the environment of slurmctld and slurmdbd: configuration, accounts and their shared key."""
    return {
        "SLURM_CONF": str(instance.slurm_conf),
        "SLURM_SACK_KEY": str(instance.slurm / "slurm.key"),
        **nss.environment(instance.slurm, libraries(asset)),
    }


def job_user(asset: Asset) -> Identity:
    """Return the account placeholders run as: one of ours, or one the machine has."""
    return nss.JOB_USER if nss.available(libraries(asset)) else identity.slurmrestd()


def unpacked(asset: Asset) -> str:
    """Return the settings for programs that were unpacked, not installed.

    They name the plugins' folder and bind to the host's address, which `nss` makes the loopback's,
    instead of any: looking up "any" fails on a machine without a network.
    """
    folder = libraries(asset)
    settings = "" if folder is None else f"PluginDir={folder / 'slurm-wlm'}\n"
    if nss.available(folder):
        settings += "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n"
    return settings


def libraries(asset: Asset) -> Path | None:
    """Return an unpacked Slurm's `usr/lib/<triplet>`.

    Raises:
        SandboxError: these are not Slurm's files.
    """
    if asset.root is None:
        return None
    folders = sorted((asset.root / "usr" / "lib").glob("*/slurm-wlm"))
    if not folders:
        raise SandboxError(f"{asset.root} has no usr/lib/*/slurm-wlm: these are not Slurm's files")
    return folders[0].parent


def loader(asset: Asset) -> Path:
    """Return the loader of an unpacked Slurm's programs.

    Raises:
        SandboxError: there is none.
    """
    root = (asset.root or Path("/")) / "usr"
    loaders = sorted((*root.glob("lib64/ld-linux-*.so.*"), *root.glob("lib/**/ld-linux-*.so.*")))
    if not loaders:
        raise SandboxError(f"{root} has no loader for Slurm's programs")
    return loaders[0]


def _rest_conf(instance: Instance) -> Path:
    return instance.slurm / "slurmrestd.conf"


def write_command(
    path: Path, asset: Asset, folder: Path, settings: Mapping[str, str] = MappingProxyType({})
) -> None:
    """Write a wrapper of a Slurm command, for people or scripts.

    The loader preloads the library by an argument: the library fits only the program's own C library, and a variable would
    reach the user's shell, and with sbatch and srun the jobs.

    Args:
        path: the wrapper; the program has the same name.
        asset: the asset with the program.
        folder: the folder with the accounts that it sees.
        settings: additional environment variables.
    """
    environment = nss.environment(folder, libraries(asset))
    program = shlex.quote(str(asset.bin / path.name))
    if library := environment.pop("LD_PRELOAD", ""):
        program = f"{shlex.quote(str(loader(asset)))} --preload {shlex.quote(library)} {program}"
    variables = "".join(
        f"{key}={shlex.quote(value)} " for key, value in {**settings, **environment}.items()
    )
    path.write_text(f'#!/bin/sh\n{variables}exec {program} "$@"\n')
    path.chmod(0o755)
