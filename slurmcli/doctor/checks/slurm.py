"""Check the Slurm side: reachable, new enough, and configured for speed and correctness."""

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from slurmruntime.model.slurm_conf import Conf, Partition, Preemption
from slurmruntime.values.findings import Check, Result, fault, not_checked, ok, warning

_NODES_SINCE, _SIZES_SINCE = (25, 11), (26, 5)
"""Releases whose slurmrestd creates nodes, and takes a heterogeneous job without a script."""

_TOKEN_SOON = timedelta(days=2)
_SKEW_S = 5.0
"""Beyond this, times of the two systems can no longer be compared."""
_FORGETS_S = 60
_SIGNALLING = {"SUSPEND", "GANG"}
"""Modes of preemption in which slurmctld signals jobs: it would look for a slurmd on our nodes."""
_FAST = ("batch_sched_delay", "sched_interval", "bf_interval")


class Trouble(enum.Enum):
    """Why slurmrestd gave no usable answer."""

    NOT_SET = "not set"
    """No URL, or no token."""
    UNREACHABLE = "unreachable"
    REFUSED = "refused"
    """It rejects the token."""
    TOO_OLD = "too old"


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host from the settings, as its name resolves where the doctor runs."""

    setting: str
    """`slurm.url` or `slurm.controller_host`."""
    name: str
    addresses: Sequence[str] = ()
    """None if it does not resolve."""
    as_it_is: Sequence[str] = ()
    """Those of the name with a dot at its end, for which no search path is tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmFacts:
    """What Slurm reported."""

    trouble: Trouble | None = None
    words: str = ""
    url: str = ""
    hosts: Sequence["Host"] | None = None
    """Those that the settings name; None if the settings cannot be read."""
    release: tuple[int, int] = (0, 0)
    controller_responds: bool = True
    skew_s: float | None = None
    """slurmctld's clock minus ours."""
    token_expires_at: datetime | None = None
    """None if unknown, or if it never expires."""
    now: datetime
    partitions: Sequence[Partition] = ()
    partition: str = ""
    """The partition set in the settings; "" for Slurm's default."""
    slurm_nodes: int = 0
    has_gpus: bool = False
    """Some Kubernetes node that Slurm manages has GPUs."""
    qos: Mapping[str, Preemption] | None = None
    """By name; None without slurmdbd."""
    conf: Conf | None = None
    """None if this Slurm cannot report it (slurmrestd before 26.05)."""


def _reachable(facts: SlurmFacts) -> Result:
    match facts.trouble:
        case None:
            return ok(f"slurmrestd {facts.release[0]}.{facts.release[1]:02} at {facts.url}")
        case Trouble.NOT_SET:
            return not_checked(f"Slurm was not asked: {facts.words}")
        case Trouble.UNREACHABLE:
            return fault(
                f"{facts.url} does not answer: {facts.words}",
                "start slurmrestd, or correct slurm.url or the network in between",
            )
        case Trouble.REFUSED:
            return fault(
                f"slurmrestd refuses the token: {facts.words}",
                "renew it: scontrol token username=slurm lifespan=…, into the Secret of slurm.token_file",
            )
        case Trouble.TOO_OLD:
            return fault(f"slurmrestd is too old: {facts.words}", "upgrade Slurm to 25.11 or newer")


def _names(facts: SlurmFacts) -> Result:
    if facts.hosts is None:
        return not_checked("the settings cannot be read")
    unknown = [host for host in facts.hosts if not host.addresses]
    others = [
        host
        for host in facts.hosts
        if host.as_it_is and set(host.addresses).isdisjoint(host.as_it_is)
    ]
    if others:
        conflicts = "; ".join(
            f"{host.name} ({host.setting}) is {', '.join(host.addresses)} through a search path, and"
            f" {', '.join(host.as_it_is)} without one"
            for host in others
        )
        return fault(
            f"{conflicts}: the owner of the first name gets the token",
            f"write {others[0].name}. with a dot at its end",
        )
    if unknown:
        unresolved = ", ".join(f"{host.name} ({host.setting})" for host in unknown)
        return warning(
            f"these names do not resolve from here: {unresolved}",
            "correct them; names of Services resolve in the cluster only",
        )
    named = dict.fromkeys(host.name for host in facts.hosts)
    return ok(f"the hosts in the settings resolve: {', '.join(named)}")


def _token(facts: SlurmFacts) -> Result:
    if facts.trouble is Trouble.NOT_SET:
        return not_checked("there is no token")
    ends = facts.token_expires_at
    if ends is None:
        return ok("the token does not expire")
    left = ends - facts.now
    step = "renew it: scontrol token username=slurm lifespan=…, into the Secret of slurm.token_file"
    if left <= timedelta(0):
        return fault(f"the token expired at {ends:%Y-%m-%d %H:%M} UTC", step)
    if left < _TOKEN_SOON:
        hours = left.total_seconds() / 3600
        return warning(f"the token expires in {hours:.0f} h", step)
    return ok(f"the token is valid until {ends:%Y-%m-%d %H:%M} UTC")


def _release(facts: SlurmFacts) -> Result:
    if facts.trouble is not None:
        return not_checked("Slurm did not answer")
    release = f"Slurm {facts.release[0]}.{facts.release[1]:02}"
    if facts.release < _NODES_SINCE:
        lacks = f"{release} cannot create nodes, and takes a job's group only as a number"
        return warning(lacks, "upgrade to 25.11; or run slurmd there, and give slurm.group a gid")
    if facts.release < _SIZES_SINCE:
        step = "upgrade to 26.05 or newer, or give the pods of a gang the same requests"
        return warning(f"{release} refuses gangs with pods of several sizes", step)
    return ok(f"{release} creates nodes and external jobs")


def _controller(facts: SlurmFacts) -> Result:
    if facts.trouble is not None:
        return not_checked("slurmrestd did not answer")
    if not facts.controller_responds:
        return fault("slurmctld does not answer slurmrestd", "start slurmctld: scontrol ping")
    return ok("slurmctld answers")


def _clock(facts: SlurmFacts) -> Result:
    if facts.skew_s is None:
        return not_checked("slurmctld did not report its time")
    if abs(facts.skew_s) > _SKEW_S:
        return fault(
            f"slurmctld's clock is {facts.skew_s:+.0f} s from this machine's",
            "synchronise both clocks with chrony or ntpd: tokens and times depend on them",
        )
    return ok("slurmctld's clock agrees with this machine's")


def _partition_exists(facts: SlurmFacts) -> Result:
    if not _answers(facts):
        return not_checked("slurmctld did not answer")
    if (partition := _partition(facts)) is not None:
        return ok(f"jobs go to partition {partition.name}")
    known = ", ".join(other.name for other in facts.partitions) or "none"
    if facts.partition:
        return fault(
            f"there is no partition {facts.partition}; there are: {known}",
            "correct slurm.partition in the settings, or add the partition to slurm.conf",
        )
    return fault(
        f"no partition is the default; there are: {known}",
        "set slurm.partition in the settings, or Default=YES in slurm.conf",
    )


def _partition_nodes(facts: SlurmFacts) -> Result:
    partition = _partition(facts)
    if partition is None:
        return not_checked("its partition is not known")
    if not partition.nodes:
        return fault(
            f"partition {partition.name} has no nodes",
            "label a node, or let the partition take our nodes: NodeSet=slurm-bridge "
            f"Feature=slurm-bridge, PartitionName={partition.name} Nodes=slurm-bridge",
        )
    return ok(f"partition {partition.name} has {partition.nodes} nodes")


def _partition_up(facts: SlurmFacts) -> Result:
    partition = _partition(facts)
    if partition is None:
        return not_checked("its partition is not known")
    if partition.state != "UP":
        return fault(
            f"partition {partition.name} is {partition.state}: it starts nothing",
            f"scontrol update partition={partition.name} state=up",
        )
    return ok(f"partition {partition.name} is UP")


def _room(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    most = facts.conf.max_node_count
    fix = "raise MaxNodeCount in slurm.conf and restart slurmctld; every node record counts"
    if most <= facts.slurm_nodes:
        return fault(f"MaxNodeCount={most}, and Slurm already has {facts.slurm_nodes} nodes", fix)
    return ok(f"MaxNodeCount={most} leaves room beyond {facts.slurm_nodes} nodes")


def _fast(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    configured = {parameter.partition("=")[0] for parameter in facts.conf.scheduler_parameters}
    absent = [name for name in _FAST if name not in configured]
    if absent:
        return warning(
            f"SchedulerParameters lacks {', '.join(absent)}: pods wait seconds for free nodes",
            "SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1 in slurm.conf; "
            "scontrol reconfigure",
        )
    return ok("Slurm's scheduler runs often")


def _gres(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    if facts.has_gpus and "gpu" not in facts.conf.gres_types:
        return fault(
            "GresTypes lacks gpu: Slurm silently forgets the GPUs of the nodes",
            "GresTypes=gpu in slurm.conf, restart slurmctld, delete the nodes: they are registered "
            "again",
        )
    return ok(f"GresTypes={','.join(facts.conf.gres_types) or '(none)'}")


def _limits(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    if facts.conf.enforce_part_limits != "ALL":
        return warning(
            f"EnforcePartLimits={facts.conf.enforce_part_limits or 'NO'}: "
            "jobs that can never run wait for ever",
            "EnforcePartLimits=ALL in slurm.conf; scontrol reconfigure",
        )
    return ok("jobs that can never run are refused at once")


def _memory(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    if facts.conf.min_job_age_s < _FORGETS_S:
        return fault(
            f"MinJobAge={facts.conf.min_job_age_s}: ended jobs are forgotten before their end is seen",
            f"MinJobAge=300 in slurm.conf, at least {_FORGETS_S}; scontrol reconfigure",
        )
    return ok(f"ended jobs are kept for {facts.conf.min_job_age_s} s")


def _select(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    if facts.conf.select_type != "select/cons_tres":
        return fault(
            f"SelectType={facts.conf.select_type}: nodes are not shared, and GPUs are not counted",
            "SelectType=select/cons_tres, SelectTypeParameters=CR_Core_Memory in slurm.conf",
        )
    return ok("nodes are shared by CPU, memory and GPU")


def _preempt_mode(facts: SlurmFacts) -> Result:
    if facts.conf is None:
        return _no_conf()
    wrong = [f"PreemptMode={mode}" for mode in _signalling(facts.conf.preempt_modes)]
    wrong += [
        f"{where} has PreemptMode={mode}"
        for where, preemption in _preemptions(facts)
        for mode in _signalling(preemption.modes)
    ]
    if wrong:
        return fault(
            f"{'; '.join(wrong)}: to suspend a job Slurm calls the node's slurmd; ours have none "
            "and go out of service",
            "PreemptMode=CANCEL in slurm.conf, and for the partitions and QOS that pods use",
        )
    return ok(f"PreemptMode={','.join(facts.conf.preempt_modes) or 'OFF'}")


def _grace(facts: SlurmFacts) -> Result:
    if not _answers(facts):
        return not_checked("slurmctld did not answer")
    grace_times = [
        f"{where} has GraceTime={preemption.grace_s}"
        for where, preemption in _preemptions(facts)
        if preemption.grace_s
    ]
    if grace_times:
        return warning(
            f"{'; '.join(grace_times)}: when a pod's job is preempted, Slurm signals its nodes, and "
            "those without slurmd go out of service",
            "set it to 0 where pods may run (sacctmgr modify qos NAME set GraceTime=0): a "
            "preempted pod has its own grace period",
        )
    return ok("no partition or QOS has a GraceTime")


def _signalling(modes: Sequence[str]) -> Sequence[str]:
    return sorted({mode.upper() for mode in modes} & _SIGNALLING)


def _preemptions(facts: SlurmFacts) -> Sequence[tuple[str, Preemption]]:
    of_partitions = [(f"partition {one.name}", one.preemption) for one in facts.partitions]
    return [*of_partitions, *((f"QOS {name}", one) for name, one in (facts.qos or {}).items())]


def _answers(facts: SlurmFacts) -> bool:
    return facts.trouble is None and facts.controller_responds


def _partition(facts: SlurmFacts) -> Partition | None:
    wanted = facts.partition
    return next(
        (p for p in facts.partitions if (p.name == wanted if wanted else p.is_default)), None
    )


def _no_conf() -> Result:
    return not_checked("slurmrestd cannot report slurm.conf (before 26.05), or did not answer")


CHECKS: Mapping[str, Check[SlurmFacts]] = {
    "slurmrestd": _reachable,
    "hosts of Slurm": _names,
    "Slurm token": _token,
    "Slurm release": _release,
    "slurmctld": _controller,
    "Slurm clock": _clock,
    "partition": _partition_exists,
    "partition's nodes": _partition_nodes,
    "partition's state": _partition_up,
    "MaxNodeCount": _room,
    "SchedulerParameters": _fast,
    "GresTypes": _gres,
    "EnforcePartLimits": _limits,
    "MinJobAge": _memory,
    "SelectType": _select,
    "PreemptMode": _preempt_mode,
    "GraceTime": _grace,
}
