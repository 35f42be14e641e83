"""Where what slurm-operator writes differs from what SchedMD's slurm-operator 1.3.0-rc1 writes for the same objects, and why.

Tests compare the files of a cluster line by line, and names, labels, ports and mounts of bodies: what only one of them has
must be listed here.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference."""

    file: str
    """The file; in `BODY_DIFFERENCES`, the daemon."""
    where: str
    """The parameter, or the kind of line."""
    theirs: str
    ours: str
    reason: str


DIFFERENCES: Final = (
    Difference(
        file="slurm.conf",
        where="a parameter that `extraConf` repeats",
        theirs="twice: theirs, then the user's",
        ours="once, with the user's value",
        reason="slurmctld logs an error at each start, and Slurm decides which of the two counts",
    ),
    Difference(
        file="slurm.conf",
        where="`SlurmctldParameters`, `AuthInfo`, `AuthAltParameters` with additions in `extraConf`",
        theirs="three times; the last one is sorted, in lower case",
        ours="once: ours, then the user's, with their case",
        reason="lower case breaks paths, such as that of a key",
    ),
    Difference(
        file="slurm.conf",
        where="`MaxNodeCount`",
        theirs="1024",
        ours="1024, or twice the number of workers if that is more",
        reason="worker 1025 could not register",
    ),
    Difference(
        file="slurm.conf",
        where="`ReturnToService`",
        theirs="absent: 0",
        ours="2",
        reason="a worker that was unreachable, or came back on another machine, would stay DOWN until an administrator resumes it",
    ),
    Difference(
        file="slurm.conf",
        where="`SlurmctldAddr` with standby slurmctlds",
        theirs="the Service",
        ours="absent: clients try each `SlurmctldHost`",
        reason="with one address for all, clients cannot fail over on their own",
    ),
    Difference(
        file="slurm.conf",
        where="`AccountingStorageHost`, `AccountingStoragePort` of an external slurmdbd",
        theirs="a Service that does not exist",
        ours="`externalConfig`",
        reason="nothing reads their field",
    ),
    Difference(
        file="slurm.conf",
        where="`GresTypes`",
        theirs="absent",
        ours="the kinds of devices of all NodeSets, and the user's",
        reason="Slurm silently drops devices of other kinds",
    ),
    Difference(
        file="slurm.conf",
        where="NodeSets whose nodes would have the same names",
        theirs="both; slurmctld exits",
        ours="the older one; the newer one reports the conflict and gets no workers",
        reason="creating a NodeSet must not block every other change to the same Slurm",
    ),
    Difference(
        file="slurm.conf",
        where="a partition that is removed while jobs have it",
        theirs="removed, with its jobs",
        ours="`State=DOWN` until no live job has it",
        reason="Slurm ends all jobs of a partition that has no line",
    ),
    Difference(
        file="slurm.conf",
        where="duplicate partitions, and nodes that belong to no NodeSet",
        theirs="written; slurmctld exits",
        ours="refused, with the field",
        reason="a typo must not reach a running slurmctld",
    ),
    Difference(
        file="slurm.conf",
        where="parameters that the pods depend on, in `extraConf`",
        theirs="the user's value beside theirs",
        ours="refused, with the reason",
        reason="the pods would not match the configuration",
    ),
    Difference(
        file="gres.conf",
        where="the file, if a NodeSet has GPUs and no ConfigMap brings it",
        theirs="absent",
        ours="`AutoDetect`, for the vendor in the resource limits of the slurmd container",
        reason="slurmd would find no device, and Slurm would drain the node",
    ),
    Difference(
        file="slurmdbd.conf",
        where="`StoragePass` with a backslash, # or a blank",
        theirs="unescaped",
        ours="escaped",
        reason="Slurm cuts the password there, and slurmdbd could not log in",
    ),
    Difference(
        file="slurmdbd.conf",
        where="a parameter that `extraConf` repeats",
        theirs="twice",
        ours="once, with the user's value",
        reason="as in slurm.conf",
    ),
)

BODY_DIFFERENCES: Final = (
    Difference(
        file="all kinds",
        where="a user's false, 0 and empty strings",
        theirs="dropped",
        ours="kept; they override our values",
        reason="otherwise a container could be neither unprivileged nor run as root",
    ),
    Difference(
        file="all kinds",
        where="a user's `tolerations`, `dnsConfig.searches`",
        theirs="replace the operator's",
        ours="added to ours",
        reason="otherwise daemons would not find each other",
    ),
    Difference(
        file="all kinds",
        where="labels and annotations of the object itself",
        theirs="copied to everything created for it",
        ours="not copied; those of `template` and `service` are used",
        reason="otherwise `kubectl apply` of any field would restart daemons",
    ),
    Difference(
        file="all kinds",
        where="labels `part-of` and `managed-by`",
        theirs="absent",
        ours="`slurm` and `slurm-bridge`",
        reason="they tell who created an object",
    ),
    Difference(
        file="all kinds",
        where="`blockOwnerDeletion` of owner references",
        theirs="true",
        ours="false",
        reason="a Controller that is deleted in the foreground stays until its workers are gone; meanwhile its slurmctld would be deleted again and again",
    ),
    Difference(
        file="slurmctld, slurmrestd, slurmd",
        where="the startup probe",
        theirs="six times, every ten seconds",
        ours="sixty times, every second",
        reason="a daemon that misses the first probe would become ready ten seconds later",
    ),
    Difference(
        file="slurmctld",
        where="the Service for clients",
        theirs="selects the label `controller.slinky.slurm.net/active`",
        ours="selects all slurmctld pods; readiness shows which one answers",
        reason="after a restart without the operator, no pod would have the label",
    ),
    Difference(
        file="slurmctld",
        where="`service.port`",
        theirs="the only port",
        ours="in addition to 6817",
        reason="slurm.conf names 6817",
    ),
    Difference(
        file="slurmctld",
        where="ConfigMaps that the Controller names",
        theirs="mounted",
        ours="their files are checked and put into `NAME-config`",
        reason="a typo in one of them must not reach slurmctld",
    ),
    Difference(
        file="slurmctld",
        where="a change of slurm.conf",
        theirs="restarts slurmctld, unless `inplaceReconfigure` is true",
        ours="reconfigures it, by the container `reconfigure`; slurmctld restarts only for what a reconfigure cannot change",
        reason="clients do not have to wait for a restart",
    ),
    Difference(
        file="slurmctld",
        where="`/etc/slurm`",
        theirs="the ConfigMap and the keys",
        ours="an empty volume; the container `reconfigure` copies the files of `NAME-config-wanted` to it if slurmctld accepts them, otherwise those it accepted last (`NAME-config`), and links the keys in `/etc/slurm-keys`",
        reason="slurmctld would not start again with files that it refuses",
    ),
    Difference(
        file="slurmdbd",
        where="`/etc/slurm`",
        theirs="the Secret with slurmdbd.conf, and the keys",
        ours="an empty volume; the init container `configuration` copies the file of the Secret `NAME-accounting-wanted` to it if slurmdbd accepts it, otherwise the one it last served with (`NAME-accounting`), and links the keys in `/etc/slurm-keys`",
        reason="slurmdbd would not start with a file that it refuses",
    ),
    Difference(
        file="slurmctld",
        where="its first start with an Accounting",
        theirs="fails and backs off until slurmdbd answers",
        ours="the init container `slurmdbd` waits for that, unless slurmctld has a saved state",
        reason="the back-off grows to five minutes",
    ),
    Difference(
        file="slurmctld",
        where="`podManagementPolicy`",
        theirs="`OrderedReady`",
        ours="`Parallel`",
        reason="a standby must not wait for the first slurmctld",
    ),
    Difference(
        file="slurmctld",
        where="the ServiceMonitor",
        theirs="finds the pods through all Services that select them",
        ours="only through the Service for clients",
        reason="each sample would be scraped twice",
    ),
    Difference(
        file="slurmrestd",
        where="protocol for clients",
        theirs="plain HTTP",
        ours="HTTPS, by the side-car `tls`; slurmrestd listens on the pod's loopback only. The certificate and the CA that clients trust are in"
        " Secret and ConfigMap `NAME-restapi-tls`",
        reason="anyone who intercepts a token can act as its user, for example root",
    ),
    Difference(
        file="slurmrestd",
        where="a change that requires a restart of all daemons",
        theirs="never reaches it",
        ours="restarts it",
        reason="slurmrestd reads slurm.conf only at startup",
    ),
    Difference(
        file="slurmd",
        where="preStop",
        theirs="sets the node DOWN",
        ours="drains it and waits for its jobs, for up to `terminationGracePeriodSeconds`: a day, unless the template sets it",
        reason="DOWN kills all jobs of the node at once",
    ),
    Difference(
        file="slurmd",
        where="the PodDisruptionBudget",
        theirs="`slurm-workers-pdb-CONTROLLER` with `maxUnavailable: 0`",
        ours="`NODESET-workers` for each NodeSet, with the largest possible `minAvailable`",
        reason="while a NodeSet scales in, theirs allows busy workers to be evicted",
    ),
    Difference(
        file="slurmd",
        where="the ConfigMap with sshd_config",
        theirs="`NAME-ssh-config`",
        ours="`NAME-workers-ssh-config`",
        reason="a LoginSet of the same name already uses that name",
    ),
    Difference(
        file="slurmd",
        where="the pods' names if `scalingMode` is DaemonSet",
        theirs="generated",
        ours="`NODESET-NODE`",
        reason="after a lost reply, there would be two workers on one node",
    ),
    Difference(
        file="slurmd",
        where="the node's name in Slurm with `hostNetwork`",
        theirs="the Kubernetes node's, whether or not slurmd uses that name",
        ours="the same as without `hostNetwork`; slurmd gets it with `-N`",
        reason="a Kubernetes node may have a fully qualified name, and its machine a short one",
    ),
    Difference(
        file="slurmd",
        where="annotation `pod-deadline`, and the node's comment in Slurm",
        theirs="when the last job ends, and the pod's name",
        ours="absent; labels and `SlurmNodeState` conditions are theirs",
        reason="jobs are read only while workers are being removed",
    ),
    Difference(
        file="slurmd",
        where="`--conf`",
        theirs="with `Topology` from an annotation of the pod",
        ours="without",
        reason="an empty `Topology=` makes the node invalid; once a worker has registered, its topology is set from its Kubernetes node",
    ),
    Difference(
        file="slurmd",
        where="`POD_CPUS`, `POD_MEMORY`",
        theirs="numbers; 0 without limits",
        ours="the container's limits; without limits, the Kubernetes node's capacity",
        reason="0 CPUs would be wrong",
    ),
    Difference(
        file="login",
        where="`sshd_config` and `extraSshdConfig`",
        theirs="one after the other",
        ours="the user's, then ours, then the user's `Match` blocks",
        reason="sshd uses the first of two values, under any name of the keyword",
    ),
)
