"""Where what we make differs from what SchedMD's slurm-operator 1.3.0-rc1 makes for the same objects, and why.

A test compares names, labels, ports and mounts: what only one of them has must stand here.
"""

from typing import Final

from slurmoperator.configuration.differences import Difference

BODY_DIFFERENCES: Final = (
    Difference(
        file="all kinds",
        where="a user's false, 0 and empty texts",
        theirs="dropped",
        ours="laid over ours",
        reason="a container could not be unprivileged, nor run as root",
    ),
    Difference(
        file="all kinds",
        where="a user's `tolerations`, `dnsConfig.searches`",
        theirs="instead of theirs",
        ours="besides ours",
        reason="daemons would not find each other",
    ),
    Difference(
        file="all kinds",
        where="labels and annotations of the object itself",
        theirs="copied to all that is made for it",
        ours="left where they are; those of `template` and `service` are taken",
        reason="`kubectl apply` of any field would restart daemons",
    ),
    Difference(
        file="all kinds",
        where="labels `part-of` and `managed-by`",
        theirs="absent",
        ours="`slurm` and `slurm-bridge`",
        reason="they say who made an object",
    ),
    Difference(
        file="all kinds",
        where="`blockOwnerDeletion` of what is made",
        theirs="true",
        ours="false",
        reason="if a Controller is deleted in the foreground, its slurmctld would be deleted again and again while it stays for its workers",
    ),
    Difference(
        file="slurmctld, slurmrestd, slurmd",
        where="the startup probe",
        theirs="looks six times, every ten seconds",
        ours="looks sixty times, every second",
        reason="a daemon that is not there at the first look would be taken for ready ten seconds later",
    ),
    Difference(
        file="slurmctld",
        where="the Service for clients",
        theirs="selects the label `controller.slinky.slurm.net/active`",
        ours="selects all slurmctld pods; readiness tells which answers",
        reason="after a restart without the operator no pod would have the label",
    ),
    Difference(
        file="slurmctld",
        where="`service.port`",
        theirs="the only port",
        ours="besides 6817",
        reason="slurm.conf names 6817",
    ),
    Difference(
        file="slurmctld",
        where="ConfigMaps that the Controller names",
        theirs="mounted",
        ours="their files are in `NAME-config`, checked",
        reason="a typing error in one of them must not reach slurmctld",
    ),
    Difference(
        file="slurmctld",
        where="a change of slurm.conf",
        theirs="restarts slurmctld, unless `inplaceReconfigure` is true",
        ours="the container `reconfigure` is always there; only what no reconfigure can change restarts slurmctld",
        reason="clients need not wait for a restart",
    ),
    Difference(
        file="slurmctld",
        where="`/etc/slurm`",
        theirs="the ConfigMap and the keys",
        ours="an empty volume; the container `reconfigure` puts there what slurmctld takes of `NAME-config-wanted`, or what it took last (`NAME-config`), and links to the keys in `/etc/slurm-keys`",
        reason="files that slurmctld refuses would end it at its next start",
    ),
    Difference(
        file="slurmdbd",
        where="`/etc/slurm`",
        theirs="the Secret with slurmdbd.conf, and the keys",
        ours="an empty volume; the init container `configuration` puts there what slurmdbd takes of the Secret `NAME-accounting-wanted`, or what it served with last (`NAME-accounting`), and links to the keys in `/etc/slurm-keys`",
        reason="a file that slurmdbd refuses would end it",
    ),
    Difference(
        file="slurmctld",
        where="its first start with an Accounting",
        theirs="fails, ever later, until slurmdbd answers",
        ours="the init container `slurmdbd` waits for that; once there is a state, it waits for nothing",
        reason="the pauses between starts grow to five minutes",
    ),
    Difference(
        file="slurmctld",
        where="`podManagementPolicy`",
        theirs="`OrderedReady`",
        ours="`Parallel`",
        reason="a standby must not wait for the first one",
    ),
    Difference(
        file="slurmctld",
        where="the ServiceMonitor",
        theirs="finds the pods by all Services that select them",
        ours="by the Service for clients only",
        reason="each sample would be there twice",
    ),
    Difference(
        file="slurmrestd",
        where="how clients speak to it",
        theirs="plain HTTP",
        ours="TLS, by the side-car `tls`; slurmrestd listens on the pod's loopback only. What it presents and what clients trust is in"
        " Secret and ConfigMap `NAME-restapi-tls`",
        reason="whoever reads a token on the way may act as its user, root for instance",
    ),
    Difference(
        file="slurmrestd",
        where="a change that all daemons must be restarted for",
        theirs="never reaches it",
        ours="restarts it",
        reason="slurmrestd reads slurm.conf only at its start",
    ),
    Difference(
        file="slurmd",
        where="preStop",
        theirs="sets the node DOWN",
        ours="drains it and waits for its jobs, within `terminationGracePeriodSeconds`: a day, unless the template says otherwise",
        reason="DOWN ends all jobs of the node at once",
    ),
    Difference(
        file="slurmd",
        where="the PodDisruptionBudget",
        theirs="`slurm-workers-pdb-CONTROLLER` with `maxUnavailable: 0`",
        ours="`NODESET-workers` for each NodeSet, with a `minAvailable` above all numbers",
        reason="while a NodeSet is scaled in, theirs lets busy workers be evicted",
    ),
    Difference(
        file="slurmd",
        where="the ConfigMap with sshd_config",
        theirs="`NAME-ssh-config`",
        ours="`NAME-workers-ssh-config`",
        reason="a LoginSet of the same name has that one",
    ),
    Difference(
        file="slurmd",
        where="the pods' names if `scalingMode` is DaemonSet",
        theirs="generated",
        ours="`NODESET-NODE`",
        reason="after a lost reply there would be two workers for one node",
    ),
    Difference(
        file="slurmd",
        where="the node's name in Slurm with `hostNetwork`",
        theirs="that of its Kubernetes node, whether slurmd has that name or not",
        ours="as without: `-N` tells slurmd",
        reason="a Kubernetes node may be called by a full name, and its machine by a short one",
    ),
    Difference(
        file="slurmd",
        where="annotation `pod-deadline`, and the node's comment in Slurm",
        theirs="when the last job ends, and the pod's name",
        ours="absent; labels and `SlurmNodeState` conditions are theirs",
        reason="jobs are read only while workers are to go",
    ),
    Difference(
        file="slurmd",
        where="`--conf`",
        theirs="with `Topology` from an annotation of the pod",
        ours="without",
        reason="an empty `Topology=` makes the node invalid; a worker that has registered is moved to where its Kubernetes node says",
    ),
    Difference(
        file="slurmd",
        where="`POD_CPUS`, `POD_MEMORY`",
        theirs="numbers; 0 without limits",
        ours="the container's limits; without limits what its Kubernetes node has",
        reason="0 CPUs are not what it has",
    ),
    Difference(
        file="login",
        where="`sshd_config` and `extraSshdConfig`",
        theirs="one after the other",
        ours="the user's, then ours, then the user's `Match` blocks",
        reason="sshd takes the first of two values, under whichever of a keyword's names",
    ),
)
