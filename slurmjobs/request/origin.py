"""What sbatch takes from its own process, and a SlurmJob has to be given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOrigin:
    """The circumstances of a submission: directory, time, environment."""

    directory: str
    """The working directory, absolute."""
    now: datetime
    """In the time zone of times in the script."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that the script inherits unless `--export` says otherwise."""
    umask: int | None = 0o022
    nice: int | None = 0
    """The priority of the submitting process: SLURM_PRIO_PROCESS."""
