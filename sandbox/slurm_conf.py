"""slurm.conf and slurmdbd.conf as text.

The settings the bridge recommends, and what loopback needs.

Sources: slurm.conf(5), slurmdbd.conf(5); what was measured about each is in docs/architecture.md.
"""

import os
import socket

from sandbox import identity
from sandbox.identity import Identity
from sandbox.instance import Instance
from sandbox.realnodes.configuration import allocatable_mib
from sandbox.realnodes.network import Network

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


def slurm_conf(
    instance: Instance, *, user: Identity, unpacked: str, network: Network | None = None
) -> str:
    """Return the cluster's configuration.

    Args:
        instance: gives ports and folders.
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
{_hybrid(instance, network)}NodeSet={PARTITION} Feature={PARTITION}
PartitionName={PARTITION} Nodes={",".join(_members(instance))} Default=YES MaxTime=INFINITE State=UP
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


def _members(instance: Instance) -> tuple[str, ...]:
    options = instance.options
    return tuple(filter(None, (PARTITION, options.hybrid_name, *options.hybrid_real_names)))


def _hybrid(instance: Instance, network: Network | None) -> str:
    """Return the lines for nodes with a slurmd.

    The configured resources count, not this machine's.
    """
    options = instance.options
    if not options.hybrid:
        return ""
    if network is not None:
        cores = f"Sockets=1 CoresPerSocket={os.cpu_count() or 1} ThreadsPerCore=1"
        return "SlurmdParameters=config_overrides\n" + "".join(
            f"NodeName={name} NodeHostname={name} NodeAddr={network.address(index)} {cores}"
            f" RealMemory={allocatable_mib(options.real_memory_mib)} State=UNKNOWN\n"
            for index, name in enumerate(options.hybrid_real_names)
        )
    return f"""\
SlurmdParameters=config_overrides
SlurmdSpoolDir={instance.slurm / "spool"}
SlurmdPidFile={instance.slurm / "spool" / "slurmd.pid"}
NodeName={options.hybrid_name} NodeHostname={socket.gethostname()} NodeAddr=127.0.0.1 Sockets=1 CoresPerSocket={options.node_cpus} ThreadsPerCore=1 RealMemory={options.node_memory_mib} State=UNKNOWN
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
