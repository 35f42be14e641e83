"""Where our bodies differ from those of SchedMD's slurm-operator 1.3.0-rc1 for the same objects, and why.

A test compares names, labels, ports and mounts; what only one of them has must be listed here.
"""

from typing import Final

from slurmoperator.configuration.differences import Difference

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
