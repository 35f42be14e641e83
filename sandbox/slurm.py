"""Slurm: keys and configuration, slurmctld and slurmrestd as parts, and its commands for PATH."""

import secrets
import shlex
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx

from sandbox import accounts, identity, probes, slurm_conf, slurm_token
from sandbox.assets import Asset
from sandbox.errors import SandboxError
from sandbox.identity import Identity
from sandbox.instance import Instance, make_folder, write_private
from sandbox.part import Part

API = "v0.0.44"
"""Data parser for the sandbox's own requests; `bridge.slurm` negotiates for itself."""
COMMANDS = ("sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sdiag", "sinfo", "squeue")
TOKEN_LIFETIME = timedelta(days=365)
_REQUEST_TIMEOUT_S = 30.0


def prepare(instance: Instance, asset: Asset, now: datetime) -> None:
    """Make keys, configuration files, folders and the wrappers in `bin`."""
    user = identity.servers()
    folder = make_folder(instance.slurm, user)
    for name in ("state", "run"):
        make_folder(folder / name, user)
    write_private(folder / "slurm.key", secrets.token_bytes(1024), user)
    write_private(folder / "jwt.key", secrets.token_bytes(32), user)
    text = slurm_conf.slurm_conf(instance, user=user, plugins=plugins(asset))
    instance.slurm_conf.write_text(text)
    # slurmrestd refuses to be SlurmUser; where everything has one uid, it is told that SlurmUser were another.
    _rest_conf(instance).write_text(
        text.replace(f"\nSlurmUser={user.name}\n", "\nSlurmUser=root\n")
    )
    write_private(token_file(instance), token(instance, "root", now))
    env = environment(instance, asset)
    for name in COMMANDS:
        _write_wrapper(instance.bin / name, asset.bin / name, env)


def parts(instance: Instance, asset: Asset, now: datetime) -> tuple[Part, ...]:
    """The controller and the REST daemon."""
    return (_slurmctld(instance, asset), _slurmrestd(instance, asset, now))


def _slurmctld(instance: Instance, asset: Asset) -> Part:
    return Part(
        name="slurmctld",
        # -i: a slurmctld killed before its first periodic save leaves an incomplete set of state files, else fatal.
        argv=(str(asset.bin / "slurmctld"), "-D", "-i", "-f", str(instance.slurm_conf)),
        env={
            **environment(instance, asset),
            "SLURM_SACK_KEY": str(instance.slurm / "slurm.key"),
        },
        identity=identity.servers(),
        folder=instance.slurm / "run",
        port=instance.ports["slurmctld"],
        answers=partial(probes.says_yes, f"{instance.url('slurmctld')}/readyz"),
        needs=("slurmdbd",) if instance.options.accounting else (),
        data=(instance.slurm / "state",),
    )


def _slurmrestd(instance: Instance, asset: Asset, now: datetime) -> Part:
    single_uid = identity.servers() == identity.slurmrestd()
    conf = _rest_conf(instance) if single_uid else instance.slurm_conf
    return Part(
        name="slurmrestd",
        argv=(
            str(asset.bin / "slurmrestd"),
            *("-f", str(conf)),
            *("-a", "rest_auth/jwt"),
            *("-t", "8"),
            f"127.0.0.1:{instance.ports['slurmrestd']}",
        ),
        env={
            **environment(instance, asset),
            "SLURM_CONF": str(conf),
            "SLURM_JWT": "daemon",  # load auth/jwt only: neither munge nor slurm.key is needed
            "SLURMRESTD_JSON": "compact",
            "SLURMRESTD_DEBUG_STDERR": "error",
            "MALLOC_ARENA_MAX": "1",  # a list of jobs costs memory per arena, and it is never given back
        },
        identity=identity.slurmrestd(),
        folder=Path("/"),
        port=instance.ports["slurmrestd"],
        answers=partial(
            probes.says_yes,
            f"{instance.url('slurmrestd')}/slurm/{API}/diag/",
            headers={"X-SLURM-USER-TOKEN": token(instance, "root", now)},
        ),
        needs=("slurmctld",),
        once_up=partial(_populate, instance, now),
    )


def _populate(instance: Instance, now: datetime) -> None:
    if instance.options.accounting:
        _create_associations(instance, now)
    if not instance.options.bridge:  # else the node controller registers them
        for name in instance.options.node_names:
            request(instance, "POST", "new/node/", {"node_conf": node_conf(instance, name)}, now)


def node_conf(instance: Instance, name: str) -> str:
    """An external node of the same size as the KWOK node of that name."""
    options = instance.options
    files = ",".join(f"file=gpu-{number}" for number in range(options.node_gpus))
    gpus = (
        f"Gres=gpu:{options.node_gpus} GresConf=count={options.node_gpus},name=gpu,{files}"
        if options.node_gpus
        else ""
    )
    return (
        f"NodeName={name} State=External NodeAddr=127.0.0.1 Sockets=1 CoresPerSocket={options.node_cpus} "
        f"ThreadsPerCore=1 CPUs={options.node_cpus} RealMemory={options.node_memory_mib} "
        f"Feature={slurm_conf.PARTITION} {gpus}"
    ).rstrip()


def _create_associations(instance: Instance, now: datetime) -> None:
    account = accounts.JOB_USER.name
    people = [account, *(person.name for person in accounts.PEOPLE)]
    where = {"accounts": [account], "clusters": [slurm_conf.CLUSTER]}
    request(
        instance,
        "POST",
        "accounts_association/",
        {
            "association_condition": where,
            "account": {"description": "jobs of the bridge", "organization": "sandbox"},
        },
        now,
        service="slurmdb",
    )
    request(
        instance,
        "POST",
        "users_association/",
        {"association_condition": {**where, "users": people}, "user": {"defaultaccount": account}},
        now,
        service="slurmdb",
    )


def request(
    instance: Instance,
    method: str,
    path: str,
    body: object,
    now: datetime,
    *,
    service: str = "slurm",
) -> dict[str, Any]:
    """One request to slurmrestd as root, for set-up.

    Raises:
        SandboxError: Slurm refused.
    """
    answer = httpx.request(
        method,
        f"{instance.url('slurmrestd')}/{service}/{API}/{path}",
        json=body,
        headers={"X-SLURM-USER-TOKEN": token(instance, "root", now)},
        timeout=_REQUEST_TIMEOUT_S,
        trust_env=False,
    )
    if not answer.is_success:
        raise SandboxError(f"slurmrestd: {method} {path}: {answer.status_code} {answer.text[:500]}")
    decoded: dict[str, Any] = answer.json()
    return decoded


def token(instance: Instance, user: str, now: datetime) -> str:
    """A token to act as `user` in Slurm."""
    key = (instance.slurm / "jwt.key").read_bytes()
    return slurm_token.mint(key, user=user, now=now, lifetime=TOKEN_LIFETIME)


def token_file(instance: Instance) -> Path:
    """Holds root's token, for the bridge."""
    return instance.slurm / "token"


def environment(instance: Instance, asset: Asset) -> dict[str, str]:
    """What every Slurm program, daemon or command, needs."""
    libraries = None if asset.root is None else _libraries(asset.root)
    return {
        "SLURM_CONF": str(instance.slurm_conf),
        **accounts.environment(instance.slurm, libraries),
    }


def plugins(asset: Asset) -> Path | None:
    """The plugin folder of an unpacked Slurm; an installed one knows its own."""
    return None if asset.root is None else _libraries(asset.root) / "slurm-wlm"


def job_user(asset: Asset) -> Identity:
    """Whom placeholders run as."""
    libraries = None if asset.root is None else _libraries(asset.root)
    return accounts.JOB_USER if accounts.available(libraries) else identity.slurmrestd()


def _libraries(root: Path) -> Path:
    """`usr/lib/<triplet>`, whichever the machine's is.

    Raises:
        SandboxError: no Slurm plugins are there.
    """
    found = sorted((root / "usr" / "lib").glob("*/slurm-wlm"))
    if not found:
        raise SandboxError(f"{root}: no usr/lib/*/slurm-wlm, so these are not Slurm's files")
    return found[0].parent


def _rest_conf(instance: Instance) -> Path:
    return instance.slurm / "slurmrestd.conf"


def _write_wrapper(path: Path, program: Path, env: dict[str, str]) -> None:
    # The preloaded library fits the programs' own C library only: it must not reach the user's shell.
    settings = " ".join(
        f"{name}={shlex.quote(value)}" for name, value in env.items() if name != "SLURM_CONF"
    )
    path.write_text(
        f'#!/bin/sh\n{settings} exec {shlex.quote(str(program))} "$@"\n'.replace("\n ", "\n")
    )
    path.chmod(0o755)
