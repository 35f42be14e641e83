"""slurmrestd as the sandbox itself uses it: tokens, nodes, accounts.

The product's client is `bridge.slurm`.
"""

from datetime import datetime, timedelta
from pathlib import Path

import httpx

from sandbox import nss, slurm_conf, slurm_token
from sandbox.errors import SandboxError
from sandbox.instance import Instance
from slurmruntime.model.objects import JsonDict

API = "v0.0.44"
TOKEN_LIFETIME = timedelta(days=365)
_REQUEST_TIMEOUT_S = 30.0


def token(instance: Instance, user: str, now: datetime) -> str:
    """Return a token to act as `user` in Slurm."""
    key = (instance.slurm / "jwt.key").read_bytes()
    return slurm_token.mint(key, user=user, now=now, lifetime=TOKEN_LIFETIME)


def token_file(instance: Instance) -> Path:
    """Return the file with root's token, which the bridge reads."""
    return instance.slurm / "token"


def credentials(instance: Instance) -> dict[str, str]:
    """Return the header that authenticates a request as root."""
    return {"X-SLURM-USER-TOKEN": token_file(instance).read_text()}


def diagnostics_url(instance: Instance) -> str:
    """Return a URL that answers 200 once slurmctld, slurmdbd and slurmrestd are connected."""
    return f"{instance.url('slurmrestd')}/slurm/{_api(instance)}/diag/"


def _api(instance: Instance) -> str:
    return instance.options.data_parser or API


def create_nodes(instance: Instance) -> None:
    """Register an external node for each of Slurm's KWOK nodes.

    Raises:
        SandboxError: Slurm refused.
    """
    for name in instance.options.node_names:
        _post(
            instance, f"slurm/{_api(instance)}/new/node/", {"node_conf": _node_conf(instance, name)}
        )


def create_associations(instance: Instance) -> None:
    """Create the account's users.

    Raises:
        SandboxError: Slurm refused.
    """
    account = nss.JOB_USER.name
    people = [account, *(person.name for person in nss.PEOPLE)]
    where = {"accounts": [account], "clusters": [slurm_conf.CLUSTER]}
    about = {"description": "jobs of the bridge", "organization": "sandbox"}
    _post(
        instance,
        f"slurmdb/{_api(instance)}/accounts_association/",
        {"association_condition": where, "account": about},
    )
    _post(
        instance,
        f"slurmdb/{_api(instance)}/users_association/",
        {"association_condition": {**where, "users": people}, "user": {"defaultaccount": account}},
    )


def _node_conf(instance: Instance, name: str) -> str:
    options = instance.options
    files = ",".join(f"file=gpu-{number}" for number in range(options.node_gpus))
    settings = [
        f"NodeName={name} State=External NodeAddr=127.0.0.1 Feature={slurm_conf.PARTITION}",
        f"Sockets=1 CoresPerSocket={options.node_cpus} ThreadsPerCore=1 CPUs={options.node_cpus}",
        f"RealMemory={options.node_memory_mib}",
    ]
    if options.node_gpus:
        settings.append(f"Gres=gpu:{options.node_gpus}")
        settings.append(f"GresConf=count={options.node_gpus},name=gpu,{files}")
    return " ".join(settings)


def _post(instance: Instance, path: str, body: JsonDict) -> None:
    try:
        answer = httpx.post(
            f"{instance.url('slurmrestd')}/{path}",
            json=body,
            headers=credentials(instance),
            timeout=_REQUEST_TIMEOUT_S,
            trust_env=False,
        )
    except httpx.TransportError as error:
        raise SandboxError(f"slurmrestd: POST /{path}: no answer: {error}") from error
    if not answer.is_success:
        raise SandboxError(f"slurmrestd: POST /{path}: {answer.status_code} {answer.text[:500]}")
