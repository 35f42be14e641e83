"""slurm.conf and slurmdbd.conf as text.

The settings the bridge recommends, and what loopback needs.

Sources: slurm.conf(5), slurmdbd.conf(5); what was measured about each is in docs/architecture.md.
"""

import socket
from pathlib import Path

from sandbox import identity
from sandbox.identity import Identity
from sandbox.instance import Instance

CLUSTER = "sandbox"
PARTITION = "slurm-bridge"
"""The one partition, and the feature by which a node belongs to it."""


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


def slurm_conf(instance: Instance, *, user: Identity, unpacked: str) -> str:
    """Return the cluster's configuration.

    Args:
        instance: gives ports and folders.
        user: SlurmUser.
        unpacked: settings for programs that are not installed.
    """
    folder, ports = instance.slurm, instance.ports
    return f"""\
ClusterName={CLUSTER}
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={ports["slurmctld"]}
SlurmdPort={ports["slurmd"]}
SlurmUser={user.name}
SlurmdUser={identity.caller().name if instance.options.hybrid else user.name}
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
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory

# Nothing wakes the scheduler when an external job ends: let it look every second.
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1,default_queue_depth=10000,sched_max_job_start=0

{_accounting(instance)}
{_hybrid(instance)}NodeSet={PARTITION} Feature={PARTITION}
PartitionName={PARTITION} Nodes={PARTITION}{f",{instance.options.hybrid_name}" * instance.options.hybrid} Default=YES MaxTime=INFINITE State=UP
"""


def slurmdbd_conf(instance: Instance, *, user: Identity, unpacked: str) -> str:
    """Return the accounting daemon's configuration; it insists on mode 600."""
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


def gres_conf(instance: Instance) -> str:
    """Return gres.conf for the node with a slurmd: files that stand for devices, created by it."""
    count = instance.options.hybrid_gpus
    if not count:
        return ""
    return f"Name=gpu File={device(instance)}[0-{count - 1}]\n"


def device(instance: Instance) -> Path:
    """Return the path of that node's devices, without their index."""
    return instance.slurm / "spool" / "gpu"


def _hybrid(instance: Instance) -> str:
    """Return the lines for a node with a slurmd.

    The configured resources count, not this machine's.
    """
    options = instance.options
    if not options.hybrid:
        return ""
    return f"""\
SlurmdParameters=config_overrides
SlurmdSpoolDir={instance.slurm / "spool"}
SlurmdPidFile={instance.slurm / "spool" / "slurmd.pid"}
NodeName={options.hybrid_name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Sockets=1 CoresPerSocket={options.node_cpus} ThreadsPerCore=1 RealMemory={options.node_memory_mib}{f" Gres=gpu:{options.hybrid_gpus}" if options.hybrid_gpus else ""} State=UNKNOWN
"""


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
