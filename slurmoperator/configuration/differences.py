"""How our files differ from those that SchedMD's slurm-operator 1.3.0-rc1 writes for the same objects, and why.

A test compares the files of a cluster line by line: a line that only one of them has must be listed here.
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
