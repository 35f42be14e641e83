"""What sbatch takes from the process that it runs in, and a SlurmJob has to name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptOrigin:
    """Where, when and with which environment a script is submitted."""

    directory: str
    """The working directory, absolute."""
    now: datetime
    """With a zone: the one that times in the script are meant in."""
    host: str = ""
    """Becomes SLURM_SUBMIT_HOST, unless it is ""."""
    environment: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Variables that the script gets unless `--export` says otherwise."""
    umask: int | None = 0o022
    nice: int | None = 0
    """The priority of the submitting process: SLURM_PRIO_PROCESS."""
    limits: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Soft limits of the submitting process, by their names without RLIMIT_."""
