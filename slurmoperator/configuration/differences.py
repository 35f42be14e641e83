"""Where our files differ from those that SchedMD's slurm-operator 1.3.0-rc1 writes for the same objects, and why.

A test compares the files of a cluster line by line: a line of only one of them must stand here.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One of them."""

    file: str
    """Or whose part it is."""
    where: str
    """The parameter, or the kind of line."""
    theirs: str
    ours: str
    reason: str


DIFFERENCES: Final = (
    Difference(
        file="slurm.conf",
        where="a parameter that `extraConf` repeats",
        theirs="twice: theirs, and the user's after it",
        ours="once, with the user's value",
        reason="slurmctld logs an error at each start; which of the two counts is left to Slurm",
    ),
    Difference(
        file="slurm.conf",
        where="`SlurmctldParameters`, `AuthInfo`, `AuthAltParameters` with additions in `extraConf`",
        theirs="three times; the last one is sorted, in lower case",
        ours="once, ours before the user's, as they were written",
        reason="lower case breaks paths, such as that of a key",
    ),
    Difference(
        file="slurm.conf",
        where="`MaxNodeCount`",
        theirs="1024",
        ours="1024, or more: twice as many as there are workers",
        reason="worker 1025 could not register",
    ),
    Difference(
        file="slurm.conf",
        where="`ReturnToService`",
        theirs="absent: 0",
        ours="2",
        reason="a worker that was out of reach, or came back on another machine, would stay DOWN until somebody resumes it",
    ),
    Difference(
        file="slurm.conf",
        where="`SlurmctldAddr` with standby slurmctlds",
        theirs="the Service",
        ours="absent: clients try each `SlurmctldHost`",
        reason="with one address for all, clients cannot fail over by themselves",
    ),
    Difference(
        file="slurm.conf",
        where="`AccountingStorageHost`, `AccountingStoragePort` of an external slurmdbd",
        theirs="a Service that does not exist",
        ours="`externalConfig`",
        reason="their field is read nowhere",
    ),
    Difference(
        file="slurm.conf",
        where="`GresTypes`",
        theirs="absent",
        ours="the kinds of devices of all NodeSets, and the user's",
        reason="Slurm drops devices of other kinds without a word",
    ),
    Difference(
        file="slurm.conf",
        where="NodeSets whose nodes would have the same names",
        theirs="both; slurmctld ends",
        ours="the older one; the younger one is told, and has no workers",
        reason="who may create a NodeSet must not hold up all changes of a Slurm",
    ),
    Difference(
        file="slurm.conf",
        where="a partition that goes while jobs have it",
        theirs="gone, with its jobs",
        ours="`State=DOWN` until no live job has it",
        reason="Slurm ends all jobs of a partition without a line",
    ),
    Difference(
        file="slurm.conf",
        where="partitions that are there twice, nodes that no NodeSet has",
        theirs="written; slurmctld ends",
        ours="refused, with the field",
        reason="a typing error must not reach a running slurmctld",
    ),
    Difference(
        file="slurm.conf",
        where="parameters that the pods depend on, in `extraConf`",
        theirs="the user's value stands beside theirs",
        ours="refused, with the reason",
        reason="the pods would not fit the configuration",
    ),
    Difference(
        file="gres.conf",
        where="the file, if a NodeSet has GPUs and no ConfigMap brings it",
        theirs="absent",
        ours="`AutoDetect`, by the maker in the resource limits of the slurmd container",
        reason="slurmd would find no device, and Slurm would drain the node",
    ),
    Difference(
        file="slurmdbd.conf",
        where="`StoragePass` with a backslash, # or a blank",
        theirs="as it is",
        ours="escaped",
        reason="Slurm cuts the password there; slurmdbd could not log in",
    ),
    Difference(
        file="slurmdbd.conf",
        where="a parameter that `extraConf` repeats",
        theirs="twice",
        ours="once, with the user's value",
        reason="as in slurm.conf",
    ),
)
