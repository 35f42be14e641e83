"""Nodes and partitions, in bytes."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from slurmclient import Model, Number
from slurmexporter.readings import tres
from slurmexporter.readings.states import NODE_STATES, base_state
from slurmexporter.readings.tres import MIB

_LOAD_UNIT: Final = 100.0
"""Slurm's unit of a node's load is a hundredth."""
_NO_LOAD: Final = 0xFFFFFFFE


class NodeView(Model, frozen=True):
    """The fields of `GET /nodes/` that metrics use."""

    name: str
    state: frozenset[str] = frozenset()
    partitions: tuple[str, ...] = ()
    cpus: int = 0
    effective_cpus: int = 0
    alloc_cpus: int = 0
    alloc_idle_cpus: int = 0
    cpu_load: int = 0
    real_memory: int = 0
    specialized_memory: int = 0
    alloc_memory: int = 0
    free_mem: Number = None
    gres: str = ""
    gres_used: str = ""
    boot_time: Number = None
    last_busy: Number = None
    reason: str = ""
    reason_changed_at: Number = None
    reason_set_by_user: str = ""
    version: str = ""


class SlurmNode(Struct, frozen=True, dict=True):
    """A node; memory in bytes, times in seconds since 1970 and 0 if unknown."""

    name: str
    state: str
    flags: frozenset[str]
    partitions: tuple[str, ...]
    cpus: int
    effective_cpus: int
    allocated_cpus: int
    idle_cpus: int
    load: float | None
    memory_bytes: int
    effective_memory_bytes: int
    allocated_memory_bytes: int
    free_memory_bytes: int | None
    """None if slurmd has not reported it."""
    gres_text: str
    gres_used_text: str
    boot_s: float
    last_busy_s: float
    reason: str
    reason_since_s: float
    reason_user: str
    version: str

    @cached_property
    def gres(self) -> Mapping[tuple[str, str], float]:
        """Generic resources by name and type."""
        return tres.gres(self.gres_text)

    @cached_property
    def gres_used(self) -> Mapping[tuple[str, str], float]:
        """Allocated generic resources by name and type."""
        return tres.gres(self.gres_used_text)

    @property
    def gpus(self) -> float:
        """Number of GPUs."""
        return tres.gpus_of(self.gres_text)

    @property
    def allocated_gpus(self) -> float:
        """Number of allocated GPUs."""
        return tres.gpus_of(self.gres_used_text)

    @property
    def is_down(self) -> bool:
        """Whether it is down or does not respond."""
        return self.state in {"DOWN", "ERROR"} or "NOT_RESPONDING" in self.flags

    @property
    def is_available(self) -> bool:
        """Whether Slurm can start jobs on it now, without an administrator or powering it up."""
        return not self.is_down and not self.flags & _OUT_OF_SERVICE


def node_of(view: NodeView) -> SlurmNode:
    """Return a node of Slurm's as a value."""
    state = base_state(view.state, NODE_STATES)
    return SlurmNode(
        name=view.name,
        state=state,
        flags=view.state - {state},
        partitions=view.partitions,
        cpus=view.cpus,
        effective_cpus=view.effective_cpus,
        allocated_cpus=view.alloc_cpus,
        idle_cpus=view.alloc_idle_cpus,
        load=None if view.cpu_load >= _NO_LOAD else view.cpu_load / _LOAD_UNIT,
        memory_bytes=view.real_memory * MIB,
        effective_memory_bytes=max(0, view.real_memory - view.specialized_memory) * MIB,
        allocated_memory_bytes=view.alloc_memory * MIB,
        free_memory_bytes=None if view.free_mem is None else int(view.free_mem) * MIB,
        gres_text=view.gres,
        gres_used_text=view.gres_used,
        boot_s=view.boot_time or 0,
        last_busy_s=view.last_busy or 0,
        reason=view.reason,
        reason_since_s=view.reason_changed_at or 0,
        reason_user=view.reason_set_by_user,
        version=view.version,
    )


_OF_JOBS: Final = frozenset({"ALLOCATED", "IDLE", "MIXED"})
_OUT_OF_SERVICE: Final = frozenset(
    {
        "DRAIN",
        "FAIL",
        "MAINTENANCE",
        "POWERED_DOWN",
        "POWERING_DOWN",
        "REBOOT_ISSUED",
        "REBOOT_REQUESTED",
    }
)
_FLAGS_OF_JOBS: Final = frozenset({"COMPLETING", "PLANNED"})


def differ_by_jobs_only(before: Sequence[SlurmNode], now: Sequence[SlurmNode]) -> bool:
    """Check whether two lists differ only in allocations and in slurmd's measurements."""
    return list(map(_without_jobs, before)) == list(map(_without_jobs, now))


def _without_jobs(node: SlurmNode) -> SlurmNode:
    return replace(
        node,
        state="" if node.state in _OF_JOBS else node.state,
        flags=node.flags - _FLAGS_OF_JOBS,
        allocated_cpus=0,
        idle_cpus=0,
        load=None,
        allocated_memory_bytes=0,
        free_memory_bytes=None,
        gres_used_text="",
        last_busy_s=0,
    )


class _PartitionState(Model, frozen=True):
    state: frozenset[str] = frozenset()


class _PartitionMaximums(Model, frozen=True):
    time: Number = None
    nodes: Number = None


class PartitionView(Model, frozen=True):
    """The fields of `GET /partitions/` that metrics use."""

    name: str
    partition: _PartitionState = _PartitionState()
    maximums: _PartitionMaximums = _PartitionMaximums()

    @property
    def is_up(self) -> bool:
        """Whether it accepts jobs and starts them."""
        return "UP" in self.partition.state
