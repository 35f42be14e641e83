"""Settings of the node agents."""

from pydantic import Field

from slurmruntime.settings.values import Seconds, Section
from slurmruntime.values import quantities


class AgentSection(Section):
    """The agent of each external node: docs/agent.md."""

    pin_cores: bool = Field(
        default=False,
        description="Run the agents, which give each container exactly the cores that Slurm gave its pod; "
        "needs slurm.milli_cpu_per_cpu 1000.",
    )
    node: str = Field("", max_length=253, description="Name of the node that the agent is on.")
    cgroup_root: str = Field(
        "/sys/fs/cgroup", min_length=1, description="Where the node's cgroups are mounted."
    )
    system_root: str = Field(
        "/sys/devices/system", min_length=1, description="Where the kernel describes processors."
    )
    interval_s: Seconds = Field(
        10, description="Interval between checks of the node's cgroups while nothing changes."
    )


def check(agent: AgentSection, milli_per_cpu: int) -> None:
    """Check that Slurm's CPUs are what can be pinned to.

    Raises:
        ValueError: they are parts of one.
    """
    if agent.pin_cores and milli_per_cpu != quantities.MILLI:
        raise ValueError(
            f"agent.pin_cores needs slurm.milli_cpu_per_cpu {quantities.MILLI}, found {milli_per_cpu}: "
            "a container cannot be pinned to part of a CPU"
        )
