"""Read Slurm's own configuration: for the command line, and for programs that need its partitions."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from msgspec import Struct

from slurmclient.errors import SlurmError, TooOld
from slurmclient.wire.reading import Answer
from slurmruntime.model.slurm_conf import Conf, Partition, Preemption
from slurmruntime.slurm import wire
from slurmruntime.slurm.client import A, SlurmClient


class _PingResult(Struct, frozen=True):
    responding: bool = False


class _Ping(Answer, frozen=True):
    pings: list[_PingResult] | None = None


class _Peer(Struct, frozen=True):
    cluster: str = ""


class _Meta(Struct, frozen=True):
    slurm: _Peer = _Peer()


class _PingMeta(Answer, frozen=True):
    meta: _Meta = _Meta()


class _Nodes(Struct, frozen=True):
    total: int = 0


class _State(Struct, frozen=True):
    state: list[str] = []


class _Partition(Struct, frozen=True):
    name: str
    nodes: _Nodes = _Nodes()
    partition: _State = _State()
    grace_time: int = 0
    preempt_mode: list[str] = []
    flags: list[str] = []


class _Partitions(Answer, frozen=True):
    partitions: list[_Partition] | None = None


class _Conf(Struct, frozen=True, rename="pascal"):
    scheduler_parameters: list[str] = []
    gres_types: list[str] = []
    enforce_part_limits: list[str] = []
    max_node_count: int = 0
    min_job_age: int = 0
    select_type: str = ""
    preempt_mode: list[str] = []
    prolog_slurmctld: list[str] = []


class _Limits(Struct, frozen=True):
    grace_time: int = 0


class _Preempt(Struct, frozen=True):
    mode: list[str] = []


class _Qos(Struct, frozen=True):
    name: str
    limits: _Limits = _Limits()
    preempt: _Preempt = _Preempt()


class _QosList(Answer, frozen=True):
    qos: list[_Qos] | None = None


class _ConfAnswer(Answer, frozen=True):
    slurm_conf: dict[str, Any] | None = None


async def controller_responds(client: SlurmClient) -> bool:
    """Check whether slurmctld or one of its backups responds to slurmrestd."""
    answer = await client.call("ping", "slurm_get_ping", answer=_Ping)
    return any(ping.responding for ping in answer.pings or ())


async def cluster_name(client: SlurmClient) -> str:
    """Return the ClusterName that slurmrestd has, "" if it does not say; raise SlurmError."""
    return (await client.call("ping", "slurm_get_ping", answer=_PingMeta)).meta.slurm.cluster


async def time_s(client: SlurmClient) -> float | None:
    """Return slurmctld's clock as Unix time in whole seconds; None if it is not given."""
    answer = await client.call("diag", "slurm_get_diag", answer=wire.Diagnosis)
    return answer.statistics.req_time.positive


async def partitions(client: SlurmClient) -> tuple[Partition, ...]:
    """Return all partitions."""
    answer = await client.call("partition.list", "slurm_get_partitions", answer=_Partitions)
    return tuple(
        Partition(
            name=one.name,
            state=next(iter(one.partition.state), ""),
            nodes=one.nodes.total,
            is_default="DEFAULT" in one.flags,
            preemption=Preemption(grace_s=one.grace_time, modes=tuple(one.preempt_mode)),
        )
        for one in answer.partitions or ()
    )


async def qos(client: SlurmClient) -> Mapping[str, Preemption] | None:
    """Return how jobs of each QOS are preempted; None if slurmdbd does not answer."""
    try:
        answer = await client.call("qos.list", "slurmdb_get_qos", answer=_QosList)
    except SlurmError:
        return None
    return {
        one.name: Preemption(grace_s=one.limits.grace_time, modes=tuple(one.preempt.mode))
        for one in answer.qos or ()
    }


async def defers(client: SlurmClient) -> bool:
    """Check whether Slurm schedules at its own times only; False if it cannot be asked (before 26.05).

    slurmctld looks for the word anywhere in SchedulerParameters.
    """
    running = await conf(client)
    return running is not None and "defer" in ",".join(running.scheduler_parameters).lower()


async def conf(client: SlurmClient) -> Conf | None:
    """Return slurmctld's running configuration; None if slurmrestd does not serve it (before 26.05)."""
    answer = await _read_conf(client, _ConfAnswer)
    if answer is None:
        return None
    try:
        read = msgspec.convert(answer.slurm_conf or {}, _Conf)
    except msgspec.ValidationError:
        return None
    return Conf(
        scheduler_parameters=tuple(read.scheduler_parameters),
        gres_types=tuple(read.gres_types),
        enforce_part_limits=",".join(read.enforce_part_limits),
        max_node_count=read.max_node_count,
        min_job_age_s=read.min_job_age,
        select_type=read.select_type,
        preempt_modes=tuple(read.preempt_mode),
        prologs=tuple(read.prolog_slurmctld),
    )


async def slurm_user(client: SlurmClient) -> frozenset[str]:
    """Return SlurmUser's name and uid, none if slurmrestd does not serve it (before 26.05); raise SlurmError."""
    answer = await _read_conf(client, wire.Configuration)
    if answer is None or not answer.slurm_conf.slurm_user:
        return frozenset()
    return frozenset({answer.slurm_conf.slurm_user, str(answer.slurm_conf.slurm_user_id)})


async def _read_conf(client: SlurmClient, answer: type[A]) -> A | None:
    """Return None if slurmrestd does not serve it: releases before 26.05 do not have the path."""
    try:
        return await client.call("conf", "slurm_get_conf", answer=answer)
    except TooOld:
        return None
    except SlurmError as error:
        if error.status == HTTPStatus.NOT_FOUND:
            return None
        raise
