"""slurm.conf and slurmdbd.conf as text: the settings that the bridge recommends, and those for the loopback.

Sources: slurm.conf(5), slurmdbd.conf(5); measurements of each setting are in docs/architecture.md.
"""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

from sandbox import escrow, identity
from sandbox.errors import SandboxError
from sandbox.identity import Identity
from sandbox.instance import Instance
from sandbox.options import Options
from sandbox.realnodes.configuration import allocatable_mib
from sandbox.realnodes.network import Network

CLUSTER = "sandbox"
PARTITION = "slurm-bridge"
"""The bridge's partition, and the feature by which a node belongs to it."""
CLAIMED_GRES = "gpu:example"
"""The GRES of the devices in a real node's ResourceSlice."""
COMPUTE = "compute"
"""The partition of the nodes that only Slurm knows. If there are any, it is the default for `sbatch`."""


def authentication(instance: Instance) -> str:
    """Return the authentication settings.

    JWT for clients, Slurm's own key among the daemons, no munge; works under any uid.
    """
    return f"""\
AuthType=auth/slurm
AuthInfo=disable_sack
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={instance.slurm / "jwt.key"}
"""


def slurm_conf(
    instance: Instance, *, user: Identity, unpacked: str, network: Network | None = None
) -> str:
    """Return the cluster's configuration.

    Args:
        instance: the sandbox, for ports and folders.
        user: SlurmUser.
        unpacked: settings for programs that are not installed.
        network: of the real nodes, if there are any.
    """
    folder, ports = instance.slurm, instance.ports
    return f"""\
ClusterName={CLUSTER}
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={ports["slurmctld"]}
SlurmdPort={ports["slurmd"]}
SlurmUser={user.name}
SlurmdUser={identity.caller().name if instance.options.runs_jobs else user.name}
{authentication(instance)}CredType=cred/slurm
{unpacked}StateSaveLocation={folder / "state"}
SlurmctldPidFile={folder / "run" / "slurmctld.pid"}
SlurmctldDebug=info
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MailProg=/bin/true
ReturnToService=2
MessageTimeout=5
MinJobAge=300
EnforcePartLimits=ALL
MetricsType=metrics/openmetrics

# External nodes come and go: the table must have room for them.
MaxNodeCount=4096
GresTypes=gpu,nic
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory

# Nothing wakes the scheduler when an external job ends: let it look every second.
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,default_queue_depth=10000,sched_max_job_start=0

{_escrow(instance)}{_accounting(instance)}
{_with_slurmd(instance, network)}NodeSet={PARTITION} Feature={PARTITION}
{_partitions(instance)}"""


def slurmdbd_conf(instance: Instance, *, user: Identity, unpacked: str) -> str:
    """Return the accounting daemon's configuration; its file must have mode 600."""
    return f"""\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={instance.ports["slurmdbd"]}
SlurmUser={user.name}
{authentication(instance)}{unpacked}PidFile={instance.slurm / "run" / "slurmdbd.pid"}
DebugLevel=info
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={instance.ports["mariadb"]}
StorageUser=slurm
StorageLoc=slurm_acct
"""


def real_gres(options: Options) -> str:
    """Return the GRES of a real node with a slurmd: the same devices as the kubelet's; "" for none.

    Raises:
        SandboxError: it has devices of both kinds, which Slurm would number together.
    """
    if options.real_gpus and options.real_dra:
        raise SandboxError(
            "--hybrid takes either --real-gpus or --real-dra: Slurm would number both together"
        )
    if options.real_dra:
        return f"{CLAIMED_GRES}:{options.real_dra}"
    return f"gpu:{options.real_gpus}" if options.real_gpus else ""


def gres_conf(instance: Instance) -> str:
    """Return the slurmds' gres.conf: files that stand for the hybrid node's devices."""
    count, node = instance.options.hybrid_gpus, instance.options.hybrid_name
    if not count or not node:
        return ""
    return f"NodeName={node} Name=gpu File={device(instance)}[0-{count - 1}]\n"


def device(instance: Instance) -> Path:
    """Return the path of that node's devices, without their index."""
    return instance.slurm / "spool" / "gpu"


def _with_slurmd(instance: Instance, network: Network | None) -> str:
    """Return the lines for the nodes with a slurmd.

    The configured resources count, not this machine's.
    """
    options = instance.options
    if not options.runs_jobs:
        return ""
    size = f"Sockets=1 CoresPerSocket={options.node_cpus} ThreadsPerCore=1 RealMemory={options.node_memory_mib}"
    where = f"NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1"
    gres = {options.hybrid_name: f" Gres=gpu:{options.hybrid_gpus}"} if options.hybrid_gpus else {}
    lines = (
        f"NodeName={name} {where} Port={instance.ports[name if name in instance.ports else 'slurmd']} {size}{gres.get(name, '')} State=UNKNOWN\n"
        for name in options.slurmd_names
    )
    return f"""\
SlurmdParameters=config_overrides
SlurmdSpoolDir={instance.slurm / "spool" / "%n"}
SlurmdPidFile={instance.slurm / "spool" / "%n" / "slurmd.pid"}
{"".join((*lines, *_in_boxes(instance, network)))}"""


def _in_boxes(instance: Instance, network: Network | None) -> Iterator[str]:
    if network is None:
        return
    cores = f"Sockets=1 CoresPerSocket={os.cpu_count() or 1} ThreadsPerCore=1"
    memory = f"RealMemory={allocatable_mib(instance.options.real_memory_mib)}"
    gres = real_gres(instance.options)
    devices = f" Gres={gres}" if gres else ""
    for index, name in enumerate(instance.options.hybrid_real_names):
        where = f"NodeHostname={name} NodeAddr={network.address(index)}"
        yield f"NodeName={name} {where} {cores} {memory}{devices} State=UNKNOWN\n"


def _partitions(instance: Instance) -> str:
    options = instance.options
    hybrid = filter(None, (options.hybrid_name, *options.hybrid_real_names))
    nodes = ",".join((PARTITION, *hybrid))
    usual = "NO" if options.compute else "YES"
    lines = [f"PartitionName={PARTITION} Nodes={nodes} Default={usual} MaxTime=INFINITE State=UP\n"]
    if options.compute:
        nodes = ",".join(options.compute_names)
        lines.append(
            f"PartitionName={COMPUTE} Nodes={nodes} Default=YES MaxTime=INFINITE State=UP\n"
        )
    return "".join(lines)


def _escrow(instance: Instance) -> str:
    if not instance.options.escrow:
        return ""
    path = escrow.script(instance)
    return f"PrologSlurmctld={path}\nEpilogSlurmctld={path}\n"


def _accounting(instance: Instance) -> str:
    if not instance.options.accounting:
        return ""
    return f"""\
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={instance.ports["slurmdbd"]}
AccountingStorageEnforce=associations,limits,qos
AccountingStorageTRES=gres/gpu

# A QOS that names another in Preempt= may end its jobs; by CANCEL at once: a grace time would signal external nodes.
PreemptType=preempt/qos
PreemptMode=CANCEL
"""
