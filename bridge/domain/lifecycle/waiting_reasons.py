"""Why Slurm lets a job wait: each of its reasons in plain words, and what can be done about it.

The list: `man squeue`, JOB REASON CODES; in Slurm's source `src/common/job_state_reason.c`. Limits
are named by a scheme (`AssocGrpGRESRunMinutes`, `QOSMaxCpuPerUserLimit`), so they are explained by
their parts, and new ones are understood. `docs/reasons.md` is generated from here.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

NOT_LOOKED_AT = "WaitingForSlurm"
"""The condition's reason as long as Slurm gives none."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One reason: a clause to follow "the job waits: ", and a next step; "" if there is none."""

    words: str
    next_step: str = ""


_ASK_ADMIN = "ask a Slurm administrator to look: scontrol show job"

EXPLANATIONS: Mapping[str, Explanation] = MappingProxyType(
    {
        # --- its turn has not come
        NOT_LOOKED_AT: Explanation("Slurm has not given a reason yet"),
        "Priority": Explanation("jobs with a higher priority go first"),
        "Resources": Explanation("the resources it needs are not free"),
        "SchedDefer": Explanation("Slurm starts such jobs only in its next full pass"),
        "Cleaning": Explanation("Slurm is still cleaning up after it"),
        "Prolog": Explanation("its prolog still runs"),
        "FedJobLock": Explanation("another cluster of the federation is deciding about it"),
        # --- its own request
        "BeginTime": Explanation("the begin time it asked for has not come yet"),
        "Dependency": Explanation("a job it depends on has not ended"),
        "DependencyNeverSatisfied": Explanation(
            "a job it depends on ended in a way that never lets it start",
            "delete the pod, and create it again without this dependency",
        ),
        "DeadLine": Explanation("it can no longer end before its deadline", "delete the pod"),
        "Licenses": Explanation("the licenses it asks for are in use"),
        "JobArrayTaskLimit": Explanation("its array already runs as many tasks as it may at once"),
        "BadConstraints": Explanation(
            "no node can ever satisfy what it asks for",
            "delete the pod, and ask for less, for other features, or for a partition that is not"
            " root's alone (RootOnly): sinfo -o '%N %c %m %G %f'; scontrol show partition",
        ),
        "Constraints": Explanation(
            "no node can satisfy its constraints", "ask for other features: sinfo -o '%N %f'"
        ),
        # --- held
        "JobHeldAdmin": Explanation(
            "an administrator holds it",
            "ask the administrator, who may release it: scontrol release",
        ),
        "JobHeldUser": Explanation("its user holds it", "release it: scontrol release"),
        "JobHoldMaxRequeue": Explanation(
            "it was requeued too often and is held", "release it: scontrol release"
        ),
        # --- nodes, partitions, reservations
        "NodeDown": Explanation("a node it needs is down", "see why: sinfo -R"),
        "ReqNodeNotAvail": Explanation(
            "a node it needs is down, drained or reserved", "see why: sinfo -R; scontrol show res"
        ),
        "FrontEndDown": Explanation("no front end is up", _ASK_ADMIN),
        "PartitionDown": Explanation(
            "its partition is down: it starts nothing until an administrator sets it UP again",
            "ask an administrator, or for another partition: sinfo -s",
        ),
        "PartitionInactive": Explanation(
            "its partition is inactive: it neither takes nor starts jobs",
            "ask an administrator, or for another partition: sinfo -s",
        ),
        "PartitionNodeLimit": Explanation(
            "it asks for more nodes than its partition allows or has up",
            "ask for fewer nodes or another partition: scontrol show partition",
        ),
        "PartitionTimeLimit": Explanation(
            "it asks for more time than its partition allows",
            "ask for less time or another partition: scontrol show partition",
        ),
        "PartitionConfig": Explanation(
            "it asks for something its partition does not allow",
            "compare with scontrol show partition",
        ),
        "Reservation": Explanation(
            "its reservation has not begun or has no room",
            "see when it begins: scontrol show res",
        ),
        "ReservationDeleted": Explanation(
            "its reservation was deleted", "delete the pod, and ask for another reservation or none"
        ),
        "ReservationInvalid": Explanation(
            "it may not use its reservation", "ask for another reservation or none"
        ),
        "PowerNotAvail": Explanation("there is not enough power for it now"),
        "PowerReserved": Explanation("the power it needs is reserved"),
        "BurstBufferResources": Explanation("the burst buffer has no room for it now"),
        "BurstBufferStageIn": Explanation("its data is being moved into the burst buffer"),
        "BurstBufferOperation": Explanation("an operation of its burst buffer failed", _ASK_ADMIN),
        # --- permissions and limits
        "AccountNotAllowed": Explanation(
            "its account may not use this partition",
            "ask for another partition, or an administrator to let the account in",
        ),
        "QOSNotAllowed": Explanation(
            "its QOS may not be used in this partition or by this account",
            "ask for another QOS or partition",
        ),
        "InvalidAccount": Explanation(
            "its account is not valid in Slurm",
            "see which there are: sacctmgr show assoc",
        ),
        "InvalidQOS": Explanation(
            "its QOS is not valid in Slurm", "see which there are: sacctmgr show qos"
        ),
        "AccountingPolicy": Explanation("a limit of its account or QOS", _ASK_ADMIN),
        "QOSUsageThreshold": Explanation(
            "its account has used too much for this QOS to start it now",
            "ask for another QOS, or wait until the usage has decayed: sshare",
        ),
        "MaxMemPerLimit": Explanation(
            "it asks for more memory per CPU or node than Slurm allows", "ask for less memory"
        ),
        # --- it has run
        "NonZeroExitCode": Explanation("it ended with an error"),
        "RaisedSignal": Explanation("it was ended by a signal"),
        "TimeLimit": Explanation("it reached its time limit"),
        "InactiveLimit": Explanation("it reached the inactive limit"),
        "OutOfMemory": Explanation("it used more memory than it was allowed"),
        "JobLaunchFailure": Explanation("it could not be launched", _ASK_ADMIN),
        "SystemFailure": Explanation("Slurm failed", _ASK_ADMIN),
    }
)

_WAIT_FOR_OTHERS = "wait until others end"

_LIMIT = re.compile(
    r"(?P<owner>QOS|Association|Assoc|)(?P<kind>Grp|Max|Min|)(?P<resource>[A-Za-z]+?)"
    r"(?P<minutes>RunMinutes|Minutes|)(?:Per(?P<per>Job|Node|User|Account))?(?:Limit|NotSatisfied)?"
)

_RESOURCES: Mapping[str, str] = MappingProxyType(
    {
        "cpu": "CPU",
        "mem": "memory",
        "memory": "memory",
        "node": "node",
        "gres": "GPU (GRES)",
        "lic": "license",
        "license": "license",
        "bb": "burst buffer",
        "energy": "energy",
        "billing": "billing",
        "job": "job",
        "jobs": "job",
        "submitjob": "submitted job",
        "submitjobs": "submitted job",
        "wall": "time",
        "wallduration": "time",
        "time": "time",
        "resource": "resource",
        "unknown": "resource",
    }
)


def explain(reason: str) -> Explanation | None:
    """Explain a reason as `reasons.condition_reason` names it; None if it is unknown."""
    return EXPLANATIONS.get(reason) or _limit(reason)


def _limit(reason: str) -> Explanation | None:
    parts = _LIMIT.fullmatch(reason)
    if parts is None or not (parts["owner"] or parts["per"]):
        return None
    resource = _RESOURCES.get(parts["resource"].lower())
    if resource is None:
        return None
    by_account = parts["owner"].startswith("Assoc")
    owner, look = ("account", "assoc") if by_account else ("QOS", "qos")
    limit = f"{resource} minutes" if parts["minutes"] else resource
    match parts["kind"], parts["per"]:
        case "Min", _:
            words = f"it asks for less than the {limit} minimum of its {owner}"
            step = "ask for more"
        case _, "Job" | "Node" as one:
            words = f"it asks for more than the {limit} limit of its {owner} for one {one.lower()}"
            step = "ask for less"
        case "Grp", _ if by_account:
            words, step = f"its account as a whole has reached its {limit} limit", _WAIT_FOR_OTHERS
        case "Grp", _:
            words = f"all jobs under its QOS together have reached its {limit} limit"
            step = _WAIT_FOR_OTHERS
        case _:
            whose = "account" if parts["per"] == "Account" else "user"
            words = f"its {whose} has reached the {limit} limit of its {owner} for one {whose}"
            step = _WAIT_FOR_OTHERS
    return Explanation(
        words, f"{step}, or let an administrator change the limit: sacctmgr show {look}"
    )
